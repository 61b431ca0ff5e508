// Package disk is the store in a folder, on pebble.
//
// # The folder
//
// "lock" is locked while a store is open, and on Linux the folder itself; its text names the
// holder. "format" tells the format; a newer one is refused. It is 1 until the first subscription,
// or until the first header says what
// clients may have had, which is soon: when the first stored message is delivered. From then on it
// is 2, from the first prepared branch on 3, from the first number of a producer on 4 (with the
// first persistent send of a client over failover), and from the first body in pieces on 5. A
// program that knows no such records says that the folder is a newer program's.
// "ballast" takes a quarter of the reserve, to be given back when the disk is full. "db" is
// pebble's, but for "known" in it, which says how far its manifest and logs are durable, and sums
// that up: an open that does not find them so, or no such file, refuses (files.Known), as it does
// when a table has not the first and last key that the manifest says. "db.damaged-" with a time are
// the tables from before a repair; what else begins with "db." is left by one that was killed, and
// ended or undone by the next open, if it has the mark of a repair and nothing else.
//
// A Spool's folder has "lock" and "db" alone, from its first put to its end (spool.go): a volatile
// store logs nothing, syncs nothing, and is never opened again.
//
// # Records
//
// Numbers in keys are 8 bytes, most significant first; dest and seq name a message.
//
//	h dest              header, of a subscription without its terms; rewritable; of a prepared
//	                    branch with what it acknowledged, once
//	s dest              terms of a subscription: destination, names, selector; once
//	m dest seq          message: flags, ids, headers, and properties and body up to InlineBytes; once
//	                    in a subscription a reference: the id of the log that has it at seq; once
//	b dest seq          properties and body of a larger message; once
//	p dest seq n        piece n, of 4 bytes, of those of one that is larger than PieceBytes; once
//	c dest seq          how many pieces there are; once
//	d dest seq          facts that change: the redelivery count; rewritable
//	e time dest seq     expiration, ms since the epoch with the sign bit turned; not of logs, nor
//	                    of branches; once
//	R dest peer n       receipt; once
//	q dest peer         mark below which the receipts of a peer are dropped; rewritable
//	n dest producer     numbers that a producer used; rewritable
//	M name              small fact; rewritable
//
// A key is removed by Delete or under a range, never by SingleDelete: it would save little, and has
// pebble end the process when a compaction meets damage behind it. Sequences and destination ids
// are never reused, so no key is written again after its removal; with -tags invariants each put is
// checked.
//
// # Topics
//
// A page of a subscription goes through its references and, beside them, with an iterator through
// each log that they are to, up to 64; what is of more logs is got alone. All of it is of one
// snapshot.
//
// A log's messages end by its head alone. What is below it cannot be seen, since a page of a log
// begins at the head that its snapshot has, and is removed when the head rose by 256, or by 16 when
// there are b records: one by one when it is less than 64 messages, since one counter serves all
// topics and a log may have few of the numbers, otherwise under a range tombstone. How far that was
// done is not kept, so the first time after a start it is done from the begin.
//
// # Tombstones
//
// A removed message leaves a tombstone until compactions carry it to the bottom, and a seek that
// meets many is slow (0.7 s behind 950,000 of them). So no read starts below the destination's
// head, which the header keeps; rows of 256 and more removed messages, wherever they are, and
// whatever lies below a head that rose by as much, get a range tombstone laid over them (of a
// subscription, whose sequences have holes, when as many references were removed); and the
// look for expired messages starts where the last one found the first. Receipts are dropped by
// raising a mark, with a range tombstone every 256.
//
// Dropping a destination is six range tombstones, eight from format 5 on, but for one that keeps
// less than 64 messages of a prepared branch: branches come and go, and each read goes through all
// range tombstones of the memtable. Its expirations lie elsewhere: they are found
// when their time comes, not reported, and removed by the next Apply.
//
// What is remembered in memory of a destination (dest) does not grow with its backlog: where its
// head is, in which span of sequences bodies, pieces and facts of their own may be. Start-up reads
// headers and terms only; the spans are found by six seeks when the first message is removed.
//
// # Failures
//
// Pebble ends the process when it meets ENOSPC, and when it meets an error while it writes its log
// it ends, panics or goes on, depending on where. So it meets none: below it is a file system
// (patient.FS) that waits for space, after giving the ballast back, and that does not return from
// any other failed write, and from no failed sync at all. The store then gives the error from
// Apply and Close, tells it once through OnFatal, and confirms nothing any more. The folder stays
// locked until the process ends.
//
// What a compaction does at a damaged block is in package patient, what frees room beside one in
// covered.go.
//
// # Figures
//
// Measured on 2 cores and a virtual disk whose fdatasync of 1 KiB takes 0.16 to 0.22 ms, messages
// of 1 KiB half compressible, memtables of 16 MiB (bench_test.go). One record a message against
// two, with the body in its b record:
//
//	                                     one record      two
//	commit, 1 a sync                     3,784 msg/s     3,900
//	commit, 16 a sync                    39,400 msg/s    42,300
//	commit, 100 a sync                   119,000 msg/s   106,000
//	page of 200                          0.35 ms         2.3 ms
//	drain 100,000, 100 an Apply          208,000 msg/s   54,000
//	1,000,000: load, 100 a sync          7.4 s           15.5 s
//	  open                               41 ms           62 ms
//	  first page of 200                  0.5 ms          1.6 ms
//	  read all                           2.2 s           5.1 s
//	  page and remove 95 %               9.4 s           18.7 s
//	  first page behind the removed      0.8 ms          3.6 ms
//	  peak resident                      88 MiB          163 MiB
//	  on disk, loaded and drained        634, 105 MiB    654, 78 MiB
//
// Hence one record up to 4 KiB.
//
// A topic against a queue, best of six runs beside other work, same messages:
//
//	                                     queue           1 subscription  10 subscriptions
//	commit, 100 a sync                   66,000 msg/s    76,000 msg/s    62,000 msg/s
//	on disk, loaded                                      576 B/msg       626 B/msg
//	page of 200                          0.37 ms
//	  of a subscription to all of a log                                  0.39 ms
//	  to every tenth message                                             1.2 ms
//	  to all of 8 logs, of 50 logs                                       0.55, 1.7 ms
//	drain, 100 of each an Apply          179,000 msg/s                   35,000 msg/s, which are
//	                                                                     350,000 references/s
//
// A reference takes 6 bytes of the disk. What a page of every tenth message, or of many logs, costs
// is blocks: it reads more of them.
//
// # Size
//
// The package has more than 4,000 lines: what puts, reads and removes records, and repairs them,
// shares the table of keys above, and the rules of tombstones that go with it. What knows no
// records is below it, in packages files and patient.
package disk
