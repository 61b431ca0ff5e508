import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import javax.jms.JMSException;
import javax.jms.Session;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/** What a transaction manager asks of the resource of an XA session. */
final class Branches {
    private static final int FORMAT = 77;

    private Branches() {
    }

    /** A branch by its name: the global id, the branch being the same in all. */
    private static final class Named implements Xid {
        private final byte[] global;

        Named(String name) {
            global = name.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public int getFormatId() {
            return FORMAT;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return global;
        }

        @Override
        public byte[] getBranchQualifier() {
            return new byte[] {1};
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Named && Arrays.equals(((Named) o).global, global);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(global);
        }
    }

    static void perform(Session s, Line c, Line reply) throws JMSException, XAException {
        XAResource r = ((XASession) s).getXAResource();
        Xid xid = c.has("xid") ? new Named(c.get("xid")) : null;
        switch (c.get("op")) {
            case "start": r.start(xid, flags(c)); break;
            case "end": r.end(xid, flags(c)); break;
            case "prepare": reply.put("result", r.prepare(xid)); break;
            case "commit": r.commit(xid, false); break;
            case "commit1": r.commit(xid, true); break;
            case "rollback": r.rollback(xid); break;
            case "forget": r.forget(xid); break;
            case "recover": reply.put("result", recover(r)); break;
            default: throw new JMSException("a resource has no " + c.get("op"));
        }
    }

    private static int flags(Line c) {
        switch (c.has("flags") ? c.get("flags") : "") {
            case "join": return XAResource.TMJOIN;
            case "resume": return XAResource.TMRESUME;
            case "suspend": return XAResource.TMSUSPEND;
            case "fail": return XAResource.TMFAIL;
            case "success": return XAResource.TMSUCCESS;
            default: return XAResource.TMNOFLAGS;
        }
    }

    /** The names of the prepared branches, separated by spaces. */
    private static String recover(XAResource r) throws XAException {
        StringBuilder names = new StringBuilder();
        for (Xid x : r.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)) {
            if (x.getFormatId() == FORMAT) {
                names.append(names.length() > 0 ? " " : "")
                        .append(new String(x.getGlobalTransactionId(), StandardCharsets.UTF_8));
            }
        }
        return names.toString();
    }
}
