package disk

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store/disk/files"
)

// isAnother is what is told of a table that is not the one of the list.
const isAnother = "is another table than it was: its keys are not those that the list of the" +
	" tables says"

// checkTables refuses a store in which a table is not the one that it was: with the keys of another
// it would hide, lose and bring back messages, and none of its blocks is damaged.
func (s *Store) checkTables(ctx context.Context, fs vfs.FS, dir string) error {
	levels, err := s.db.SSTables()
	if err != nil {
		return s.openError(err)
	}
	var tables []pebble.SSTableInfo
	for _, level := range levels {
		tables = append(tables, level...)
	}
	ends := files.NewEnds()
	for i := range tables {
		t := &tables[i]
		if !t.Virtual && ends.Another(ctx, fs, fs.PathJoin(dir, nameOfTable(t)), t.Smallest, t.Largest) {
			return message.Errorf(message.Corrupt, "store %s: %s/%s %s; nothing was removed: %s",
				s.opts.Dir, files.DB, nameOfTable(t), isAnother, remedy)
		}
	}
	return nil
}

func nameOfTable(t *pebble.SSTableInfo) string { return t.BackingSSTNum.String() + tableSuffix }

// listed gives the tables of a list, the oldest first. One that lies where another should is taken
// for what it is; one that the list does not tell of is left out, and what should be there is lost.
func (r *repair) listed(levels [][]pebble.SSTableInfo) (out []files.Table) {
	ends := files.NewEnds()
	var wrong []int
	for _, level := range slices.Backward(levels) { // what is above is newer
		for i := range level {
			t := &level[i]
			path := r.fs.PathJoin(r.path(files.DB), nameOfTable(t))
			if !t.Virtual && ends.Another(r.ctx, r.seen, path, t.Smallest, t.Largest) {
				wrong = append(wrong, len(out))
			}
			out = append(out, files.Table{Path: path, Lo: t.Smallest.UserKey, Hi: t.Largest.UserKey,
				Newest: uint64(t.LargestSeqNum)})
		}
	}
	missing := map[string]bool{}
	paths := map[int]string{} // where the tables of those places are
	for _, place := range wrong {
		path := out[place].Path
		lo, hi := ends.Span(r.ctx, r.seen, path)
		of := slices.IndexFunc(wrong, func(i int) bool {
			return lo != nil && hi != nil && bytes.Equal(lo.UserKey, out[i].Lo) &&
				bytes.Equal(hi.UserKey, out[i].Hi)
		})
		what := "; it is left out"
		if of >= 0 && paths[wrong[of]] == "" {
			paths[wrong[of]] = path
			what = "; it is taken for " + r.fs.PathBase(out[wrong[of]].Path)
		}
		r.told.Others = append(r.told.Others, fmt.Sprintf("%s/%s %s%s", files.DB, r.fs.PathBase(path),
			isAnother, what))
	}
	for _, place := range wrong {
		t := &out[place]
		if path := paths[place]; path != "" {
			t.Path = path
			continue
		}
		r.told.Others = append(r.told.Others, fmt.Sprintf("what %s/%s had is lost", files.DB,
			r.fs.PathBase(t.Path)))
		missing[t.Path] = true
		r.loseSpan(files.Span{Lo: t.Lo, Hi: append(bytes.Clone(t.Hi), 0)}, t.Newest)
	}
	return slices.DeleteFunc(out, func(t files.Table) bool { return missing[t.Path] })
}
