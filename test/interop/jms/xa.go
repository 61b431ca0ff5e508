package jms

import "strings"

// XAOp is what a transaction manager asks of the resource of a session of mode XA.
type XAOp string

// The operations of javax.transaction.xa.XAResource, and the flags of XAResource.start and end that
// begin otherwise, or suspend.
const (
	XAStart    XAOp = "start"
	XAJoin     XAOp = "start join"
	XAResume   XAOp = "start resume"
	XASuspend  XAOp = "end suspend"
	XAEnd      XAOp = "end success"
	XAPrepare  XAOp = "prepare"
	XACommit   XAOp = "commit"
	XACommit1  XAOp = "commit1" // one phase
	XARollback XAOp = "rollback"
	XAForget   XAOp = "forget"
	XARecover  XAOp = "recover"
)

// Branch asks something about a branch, which is known by its name. It returns the vote of a
// prepare, and of recover the names of prepared branches. An *Error has the error code as its text.
func (s *Session) Branch(op XAOp, name string) (string, error) {
	verb, flags, _ := strings.Cut(string(op), " ")
	args := pairs{"session": s.id, "op": verb}
	args.set("xid", name)
	args.set("flags", flags)
	reply, _, err := s.p.call("xa", args, 0)
	return reply.pairs["result"], err
}
