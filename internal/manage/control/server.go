// Package control is the way to a running broker from the same machine: HTTP over a Unix socket
// in the broker's data folder, for its owner alone, speaking the JSON of package manage. A list
// of running brokers in the user's temporary folder lets the command line find them.
package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// Server answers for one broker.
type Server struct {
	http   http.Server
	socket string
	opened os.FileInfo // the socket
	entry  string
}

// Listen opens the socket for a broker whose data is in folder and puts it on the list of running
// ones. Serve answers.
func Listen(name, folder string, subject manage.Subject) (*Server, net.Listener, error) {
	socket, err := socketPath(name, folder)
	if err != nil {
		return nil, nil, err
	}
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(socket) > most {
		return nil, nil, message.Errorf(message.Unavailable, "the control socket %s cannot be opened:"+
			" its path has %d bytes, and that of a socket may have %d here; set TMPDIR to a folder with a"+
			" shorter one", socket, len(socket), most)
	}
	os.Remove(socket) // a socket left by a process that was killed; the store's lock guards us
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, nil, message.Errorf(message.Unavailable,
			"the control socket %s cannot be opened: %w", socket, err)
	}
	s := &Server{socket: socket}
	if err = os.Chmod(socket, 0o600); err == nil {
		s.opened, err = os.Lstat(socket)
	}
	if err == nil {
		s.entry, err = register(name, socket)
	}
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	// The next broker of the folder may have put its own there when this one closes.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s.http = http.Server{Handler: handler(subject), ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return manage.WithAsker(ctx, asker(c))
		}}
	return s, l, nil
}

// Serve answers until Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends the server, takes the broker off the list and removes the socket.
func (s *Server) Close(ctx context.Context) {
	os.Remove(s.entry)
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	if now, err := os.Lstat(s.socket); err == nil && os.SameFile(now, s.opened) {
		os.Remove(s.socket)
	}
}

func handler(subject manage.Subject) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, subject.Presence(), nil)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		status, err := subject.Status(r.Context())
		reply(w, status, err)
	})
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		x, err := subject.Explain(r.Context(), q.Get("queue"), q.Get("message"))
		reply(w, x, err)
	})
	mux.HandleFunc("POST /decide", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		err := subject.Decide(r.Context(), q.Get("xid"), q.Get("outcome") == commits)
		reply(w, struct{}{}, err)
	})
	mux.HandleFunc("POST /purge", func(w http.ResponseWriter, r *http.Request) {
		x, err := subject.Purge(r.Context(), r.URL.Query().Get("queue"))
		reply(w, x, err)
	})
	mux.HandleFunc("POST /remove", func(w http.ResponseWriter, r *http.Request) {
		x, err := subject.Remove(r.Context(), r.URL.Query().Get("destination"))
		reply(w, x, err)
	})
	mux.HandleFunc("POST /remove-durable", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		x, err := subject.RemoveDurable(r.Context(), q.Get("client"), q.Get("name"))
		reply(w, x, err)
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, struct{}{}, nil)
		subject.Stop()
	})
	return mux
}

// commits is the outcome of a transaction that is not a rollback.
const commits = "commit"

// failure is the JSON of an error.
type failure struct {
	Error string `json:"error"`
	Kind  string `json:"kind,omitempty"` // one of kinds; "" for any other
}

// kinds are the kinds of errors that whoever asks can act on.
var kinds = map[string]message.ErrorKind{
	"notFound": message.NotFound, "unavailable": message.Unavailable, "denied": message.Denied,
	"illegalState": message.IllegalState,
}

// fail is an error as an answer.
func fail(err error) (code int, f failure) {
	code, f.Error = http.StatusInternalServerError, err.Error()
	for name, kind := range kinds {
		if kind == message.KindOf(err) {
			f.Kind = name
		}
	}
	switch message.KindOf(err) {
	case message.NotFound:
		code = http.StatusNotFound
	case message.Unavailable:
		code = http.StatusServiceUnavailable
	}
	return code, f
}

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		var code int
		code, v = fail(err)
		w.WriteHeader(code)
	}
	// The reader of the answer sees a cut connection when this fails; nobody else can be told.
	_ = json.NewEncoder(w).Encode(v)
}

// maxSocketPath is how long the path of a Unix socket may be on every system.
const maxSocketPath = 100

// socketPath is control.sock in the data folder, or, where that is too long a name for a socket or
// there is no folder, a name in the list's folder: the broker's, or one made of it.
func socketPath(name, folder string) (string, error) {
	if folder != "" {
		if path := filepath.Join(folder, "control.sock"); len(path) <= maxSocketPath {
			return path, os.MkdirAll(folder, 0o755)
		}
	}
	list, err := listFolder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(list, entryName(name)+".sock")
	if len(path) > maxSocketPath {
		sum := sha256.Sum256([]byte(name))
		path = filepath.Join(list, entryName(hex.EncodeToString(sum[:8]))+".sock")
	}
	return path, nil
}
