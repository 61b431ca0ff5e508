package disk

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/store/disk/files"
)

// What is damaged is judged by the tables themselves: reads come by nothing that lies under a range
// tombstone, and compactions do.

// lostTable is a table whose tail was damaged.
type lostTable struct {
	name   string
	lo, hi []byte // its first and last key
	bytes  int64  // in blocks that were not found
	whole  bool   // all its records were found
}

// lookAtTables looks at each table that the list of tables has. It reports whether any is damaged,
// and shows those with another tail whose own cannot be read: then the tables are to be opened
// again.
func (r *repair) lookAtTables(db *pebble.DB) (damaged bool, err error) {
	levels, err := db.SSTables()
	if err == nil {
		r.pattern, err = files.NewPattern(r.ctx)
	}
	if err != nil {
		return false, r.error(err)
	}
	seen := map[string]bool{}
	for _, level := range levels {
		for i := range level {
			t := &level[i]
			name := t.BackingSSTNum.String() + tableSuffix
			if seen[name] {
				continue
			}
			seen[name] = true
			path := r.fs.PathJoin(r.path(files.DB), name)
			bad, tailless, err := r.lookAtTable(path)
			if tailless && err == nil {
				err = r.mendTail(lostTable{name: name, lo: t.Smallest.UserKey, hi: t.Largest.UserKey})
			}
			if err != nil {
				return false, r.error(err)
			}
			damaged = damaged || bad || tailless
		}
	}
	return damaged, nil
}

const tableSuffix = ".sst"

// lookAtTable looks at one table; see files.Pattern.
func (r *repair) lookAtTable(path string) (bad, tailless bool, err error) {
	file, err := r.seen.Open(path)
	if err != nil {
		return false, false, err
	}
	return r.pattern.Look(r.ctx, file, path)
}

// mendTail shows a table with another tail.
func (r *repair) mendTail(t lostTable) error {
	path := r.fs.PathJoin(r.path(files.DB), t.name)
	data, err := files.Read(r.fs, path)
	if err != nil {
		return err
	}
	tail, err := r.pattern.Mend(r.ctx, data, t.hi)
	if err != nil {
		return err
	}
	t.whole, t.bytes = tail.Whole, tail.Lost
	r.tailless = append(r.tailless, t)
	r.told.Cut = r.told.Cut || !t.whole
	r.seen.ShowTail(path, tail.Bytes)
	return nil
}

// tellTails tells of tables with damaged tails.
func (r *repair) tellTails() {
	for _, t := range r.tailless {
		what := "all of its blocks were found"
		if !t.whole {
			what = fmt.Sprintf("%d bytes of it could not be read; its records are from %s to %s: of"+
				" these some may be lost, and what they ended may come again", max(0, t.bytes),
				r.where(t.lo), r.where(t.hi))
		}
		r.told.Others = append(r.told.Others, fmt.Sprintf(
			"%s/%s: what leads to its blocks is damaged; %s", files.DB, t.name, what))
	}
}

// where tells of what a key is, for people.
func (r *repair) where(key []byte) string {
	what := map[byte]string{kindMeta: "facts", kindReceipt: "receipts of ", kindMark: "receipts of ",
		kindExpiry: "expirations", kindHeader: "the header of ", kindNumbers: "numbers of producers of ",
		kindTerms: "the terms of "}[key[0]]
	switch {
	case key[0] == kindMeta || key[0] == kindExpiry:
		return what
	case what == "":
		what = fmt.Sprintf("message %d of ", tailOf(key))
	}
	if h, known := r.old.headers[destOf(key)]; known {
		return what + nameOf(&h)
	}
	return what + "a destination that nothing names"
}
