package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/sstable/valblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A table ends with what leads to its blocks: an index, properties, a list of these, and a footer.
// When that is damaged pebble reads nothing of the table, nor of any other in its range of keys.
// But each block has its checksum: so blocks are found, and the table is shown with another tail,
// which leads to them.

const (
	tableFormat  = sstable.TableFormatPebblev6 // of pebbleOptions
	blockTrailer = 5                           // behind each block: how it is compressed, its checksum
	dataHeader   = 4                           // of a block of records, and of one of range tombstones
	uncompressed = byte(block.NoCompressionIndicator)
	mostPacked   = byte(block.MinLZCompressionIndicator) // the last of the kinds of compression
	listProps    = "rocksdb.properties"
	listRanges   = "rocksdb.range_del2"
	listValues   = "pebble.value_index"
)

// A block that begins behind damage may begin anywhere, so each place is tried: up to a length that
// is about that of the blocks of many records, and with so many bytes looked at for one gap.
const (
	searchLength = 20 << 10
	searchMost   = 400 << 20
)

// findBlocks gives the blocks that have their checksums.
func findBlocks(ctx context.Context, data []byte) (found []block.Handle, err error) {
	most, seen := len(data), 0
	for at := 0; at < len(data)-blockTrailer && seen < searchMost; {
		n := blockLength(data[at:], most)
		if n > 0 {
			found = append(found, block.Handle{Offset: uint64(at), Length: uint64(n)})
			at, most, seen = at+n+blockTrailer, len(data), 0
			continue
		}
		seen += min(most, len(data)-at)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, most = at+1, searchLength
	}
	return found, nil
}

// blockLength gives the length of the block that begins here, 0 when there is none up to a length.
func blockLength(b []byte, most int) int {
	crc := ^uint32(0)
	for i, c := range b[:min(most+1, len(b)-blockTrailer+1)] {
		crc = castagnoli[byte(crc)^c] ^ crc>>8
		if c <= mostPacked && binary.LittleEndian.Uint32(b[i+1:]) == masked(^crc) {
			return i
		}
	}
	return 0
}

// shape tells blocks of one kind from others: the types of its columns. at is where they are told.
func shape(b []byte, at int) string {
	if len(b) < at+7 || colblk.Version(b[at]) != colblk.Version1 {
		return ""
	}
	out := []byte{byte(at)}
	for i := range int(binary.LittleEndian.Uint16(b[at+1:])) {
		column := at + 7 + 5*i
		if column >= len(b) {
			return ""
		}
		out = append(out, b[column])
	}
	return string(out)
}

// Pattern is a small table, of which the parts are known.
type Pattern struct {
	options             *pebble.Options
	properties          []byte // a block, with its trailer
	valued              []byte // that of a table with values apart
	records, ranges     string // shapes
	index, listOfBlocks string
}

// NewPattern makes one.
func NewPattern(ctx context.Context) (*Pattern, error) {
	o := &pebble.Options{}
	o.EnsureDefaults()
	p := &Pattern{options: o}
	r, _, valued, err := p.table(2)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		return nil, err
	}
	r, l, properties, err := p.table(1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	p.properties, p.valued = properties, valued
	for _, x := range []struct {
		h     block.Handle
		at    int
		shape *string
	}{{l.Data[0].Handle, dataHeader, &p.records}, {l.RangeDel, dataHeader, &p.ranges},
		{l.Index[0], 0, &p.index}, {l.MetaIndex, 0, &p.listOfBlocks}} {
		b, done, err := readBlock(ctx, r, x.h)
		if err != nil {
			return nil, err
		}
		*x.shape = shape(b, x.at)
		done()
	}
	return p, nil
}

// table makes a table of some records of one key, and a range tombstone.
func (p *Pattern) table(records int) (r *sstable.Reader, l *sstable.Layout, properties []byte,
	err error) {
	mem := vfs.NewMem()
	f, err := mem.Create("t", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, nil, err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f),
		p.options.MakeWriterOptions(0, tableFormat))
	for i := range records {
		key := pebble.MakeInternalKey([]byte("a"), pebble.SeqNum(records-i), pebble.InternalKeyKindSet)
		err = errors.Join(err, w.Raw().Add(key, []byte("value"), false))
	}
	err = errors.Join(err, w.DeleteRange([]byte("b"), []byte("c")), w.Close())
	if err != nil {
		return nil, nil, nil, err
	}
	data, err := Read(mem, "t")
	if err != nil {
		return nil, nil, nil, err
	}
	if r, err = sstable.NewMemReader(data, p.options.MakeReaderOptions()); err != nil {
		return nil, nil, nil, err
	}
	if l, err = r.Layout(); err != nil {
		return nil, nil, nil, errors.Join(err, r.Close())
	}
	return r, l, data[l.Properties.Offset:][:l.Properties.Length+blockTrailer], nil
}

// readBlock gives what is in a block, until done is called.
func readBlock(ctx context.Context, r *sstable.Reader, h block.Handle) (b []byte, done func(),
	err error) {
	nothing := func(*block.Metadata, []byte) error { return nil }
	held, err := r.BlockReader().Read(ctx, block.NoReadEnv, nil, h, blockkind.Metadata, nothing)
	if err != nil {
		return nil, nil, err
	}
	return held.BlockData(), held.Release, nil
}

// blocks are what was found of a table.
type blocks struct {
	records []block.Handle
	last    [][]byte // keys of records
	ranges  block.Handle
	values  []byte        // where blocks of older records' values are, as the list of blocks has it
	index   *block.Handle // the first of them
	listed  bool          // the list of blocks was found
	ranged  bool          // it tells of range tombstones
	another block.Handle  // the last of another kind: the properties, behind range tombstones
	bytes   int64         // of all that have their checksums
	gapless uint64        // where the first gap between them begins
}

// find finds the blocks of a table.
func (p *Pattern) find(ctx context.Context, data []byte) (out blocks, err error) {
	found, err := findBlocks(ctx, data)
	if err != nil {
		return out, err
	}
	readable, err := sstable.NewSimpleReadable(withTail(vfs.NewMemFile(data), p.tail(len(data), out)))
	if err != nil {
		return out, err
	}
	r, err := sstable.NewReader(ctx, readable, p.options.MakeReaderOptions())
	if err != nil {
		return out, err
	}
	defer func() { _ = r.Close() }()
	for _, h := range found {
		out.bytes += int64(h.Length) + blockTrailer
		if h.Offset == out.gapless {
			out.gapless += h.Length + blockTrailer
		}
		b, done, err := readBlock(ctx, r, h)
		if err != nil {
			continue // it is none of pebble's
		}
		p.sort(&out, h, b)
		done()
	}
	return out, nil
}

// sort puts a block where it belongs.
func (p *Pattern) sort(out *blocks, h block.Handle, b []byte) {
	switch {
	case shape(b, dataHeader) == p.records:
		if key := p.lastKey(b); key != nil {
			out.records, out.last = append(out.records, h), append(out.last, key)
		}
	case shape(b, dataHeader) == p.ranges:
		out.ranges = h
	case shape(b, 0) == p.index && out.index == nil:
		out.index = &h
	case shape(b, 0) == p.listOfBlocks:
		var list colblk.KeyValueBlockDecoder
		list.Init(b)
		out.listed = true
		for name := range list.All() {
			out.ranged = out.ranged || string(name) == listRanges
		}
		out.values = valuesIn(b)
	default:
		out.another = h
	}
}

// valuesIn gives what a list of blocks tells of the blocks of older records' values; nil when there
// are none.
func valuesIn(b []byte) []byte {
	var list colblk.KeyValueBlockDecoder
	list.Init(b)
	for name, handle := range list.All() {
		if string(name) == listValues {
			return bytes.Clone(handle)
		}
	}
	return nil
}

func (p *Pattern) lastKey(b []byte) []byte {
	_, last := p.keysOf(b)
	return last
}

// keysOf gives the first and the last key of a block of records, nil for what is none.
func (p *Pattern) keysOf(b []byte) (first, last []byte) {
	schema := p.options.KeySchemas[p.options.KeySchema]
	var d colblk.DataBlockDecoder
	d.Init(schema, b)
	var it colblk.DataBlockIter
	it.InitOnce(schema, p.options.Comparer, &valblk.Reader{}) // what is in value blocks is not read
	if it.Init(&d, block.NoTransforms) != nil {
		return nil, nil
	}
	if kv := it.First(); kv != nil {
		first = bytes.Clone(kv.K.UserKey)
	}
	if kv := it.Last(); kv != nil {
		last = bytes.Clone(kv.K.UserKey)
	}
	return first, last
}

// tail gives what a table ends with that has so many bytes before it.
func (p *Pattern) tail(at int, of blocks) (out []byte) {
	put := func(b []byte) block.Handle {
		h := block.Handle{Offset: uint64(at + len(out)), Length: uint64(len(b))}
		out = append(append(out, b...), uncompressed)
		sum := crc32.Checksum(out[len(out)-len(b)-1:], castagnoli)
		out = binary.LittleEndian.AppendUint32(out, masked(sum))
		return h
	}
	varints := func(h block.Handle) []byte {
		b := make([]byte, 2*binary.MaxVarintLen64)
		return b[:h.EncodeVarints(b)]
	}
	out = append(out, p.properties...)
	if of.values != nil {
		out = append(out[:0], p.valued...)
	}
	properties := block.Handle{Offset: uint64(at), Length: uint64(len(out) - blockTrailer)}

	var list colblk.KeyValueBlockWriter
	list.Init()
	if of.values != nil {
		list.AddKV([]byte(listValues), of.values)
	}
	list.AddKV([]byte(listProps), varints(properties))
	if of.ranges.Length > 0 {
		list.AddKV([]byte(listRanges), varints(of.ranges))
	}
	listed := put(list.Finish(list.Rows()))

	var index colblk.IndexBlockWriter
	index.Init()
	for i, h := range of.records {
		index.AddBlockHandle(of.last[i], h, nil)
	}
	indexed := put(index.Finish(index.Rows()))

	magic, version := tableFormat.AsTuple()
	footer := make([]byte, tableFormat.FooterSize())
	footer[0] = byte(block.ChecksumTypeCRC32c)
	copy(footer[1:], append(varints(listed), varints(indexed)...))
	end := len(footer) - len(magic) // magic, before it the version, before it a checksum
	copy(footer[end:], magic)
	binary.LittleEndian.PutUint32(footer[end-4:], version)
	sum := crc32.Update(crc32.Checksum(footer[:end-8], castagnoli), castagnoli, footer[end-4:])
	binary.LittleEndian.PutUint32(footer[end-8:], masked(sum))
	return append(out, footer...)
}

// whole reports whether all records and range tombstones of a table were found that ends with a
// key.
func (b *blocks) whole(largest []byte) bool {
	end := uint64(0)
	for _, h := range b.records {
		if h.Offset != end {
			return false
		}
		end += h.Length + blockTrailer
	}
	isLast := b.index != nil && b.index.Offset == end ||
		len(b.last) > 0 && bytes.Equal(b.last[len(b.last)-1], largest)
	return isLast && (b.ranges.Length > 0 || b.listed && !b.ranged ||
		b.another.Length > 0 && b.another.Offset < b.gapless)
}

// Tail is what a table is shown with behind its own bytes.
type Tail struct {
	Bytes []byte
	Whole bool  // all its records and range tombstones were found
	Lost  int64 // bytes in blocks that were not
}

// Mend makes another tail for a table that ends with a key.
func (p *Pattern) Mend(ctx context.Context, data, largest []byte) (Tail, error) {
	found, err := p.find(ctx, data)
	if err != nil {
		return Tail{}, err
	}
	return Tail{p.tail(len(data), found), found.whole(largest),
		max(0, int64(len(data)-tableFormat.FooterSize())-found.bytes)}, nil
}

// Span is the keys from one on, up to another.
type Span struct{ Lo, Hi []byte }

// Without gives a tail for a table of which blocks of records are damaged, that leads to the
// others, and between which of its keys the damaged ones are. It closes the file.
func (p *Pattern) Without(ctx context.Context, file vfs.File, lo, hi []byte) (tail []byte,
	lost []Span, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	r, err := p.Reader(ctx, file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	defer func() { _ = r.Close() }()
	l, err := r.Layout()
	if err != nil {
		return nil, nil, err
	}
	found := blocks{ranges: l.RangeDel}
	b, done, err := readBlock(ctx, r, l.MetaIndex)
	if err != nil {
		return nil, nil, err
	}
	found.values = valuesIn(b)
	done()
	open := false // the last span goes on
	for _, h := range l.Data {
		sound, err := isSound(ctx, file, h.Handle)
		if err != nil {
			return nil, nil, err
		}
		if !sound {
			if !open {
				lost, open = append(lost, Span{lo, append(bytes.Clone(hi), 0)}), true
			}
			continue
		}
		b, done, err := readBlock(ctx, r, h.Handle)
		if err != nil {
			return nil, nil, err
		}
		first, last := p.keysOf(b)
		done()
		if open {
			lost[len(lost)-1].Hi, open = append(bytes.Clone(first), 0), false // which may be an older one
		}
		found.records, found.last = append(found.records, h.Handle), append(found.last, last)
		lo = append(bytes.Clone(last), 0) // of which no newer record follows
	}
	return p.tail(int(info.Size()), found), lost, nil
}

// Bounds gives what Merge is to know of a table that no list tells of; nothing of an empty one.
func (p *Pattern) Bounds(ctx context.Context, fs vfs.FS, path string) (t Table, err error) {
	m := merging{ctx: ctx, p: p, fs: fs}
	t.Path = path
	r, err := m.open(t)
	if err != nil {
		return t, err
	}
	defer func() { _ = r.Close() }()
	if err := m.rangesOf(r); err != nil {
		return t, err
	}
	for _, e := range m.ends {
		t.Newest = max(t.Newest, e.seq)
	}
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return t, err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		if t.Lo == nil {
			t.Lo = bytes.Clone(kv.K.UserKey)
		}
		t.Hi = append(t.Hi[:0], kv.K.UserKey...)
		t.Newest = max(t.Newest, uint64(kv.SeqNum()))
	}
	return t, it.Close()
}

// Reader reads a table; without an error it has the file, and closes it.
func (p *Pattern) Reader(ctx context.Context, f vfs.File) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	return sstable.NewReader(ctx, readable, p.options.MakeReaderOptions())
}

// Look reports whether a block of records of a table is damaged, and whether what leads to these
// is, or the range tombstones, without which nothing is read either. It closes the file.
func (p *Pattern) Look(ctx context.Context, file vfs.File, path string) (bad, tailless bool,
	err error) {
	f := &checkedFile{file, path}
	reader, err := p.Reader(ctx, f)
	if err != nil {
		return false, true, f.Close() // an error of the system comes again, to who reads all of it
	}
	defer func() { _ = reader.Close() }()
	l, err := reader.Layout()
	if err != nil {
		return false, true, nil //nolint:nilerr // as above
	}
	for _, h := range append([]block.Handle{l.TopIndex, l.RangeDel, l.Properties, l.MetaIndex},
		l.Index...) {
		sound, err := isSound(ctx, file, h)
		if err != nil || !sound {
			return false, err == nil, err
		}
	}
	for _, h := range l.Data {
		sound, err := isSound(ctx, file, h.Handle)
		if err != nil {
			return false, false, err
		}
		bad = bad || !sound
	}
	return bad, false, nil
}

func isSound(ctx context.Context, f vfs.File, h block.Handle) (bool, error) {
	if err := ctx.Err(); err != nil || h.Length == 0 {
		return true, err
	}
	b := make([]byte, h.Length+blockTrailer)
	_, err := f.ReadAt(b, int64(h.Offset)) //nolint:gosec // below its size
	return sound(b), err
}
