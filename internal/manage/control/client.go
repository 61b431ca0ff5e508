package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// ListFolder is where the user's list of running brokers is.
func ListFolder() string {
	return filepath.Join(os.TempDir(), "hopwire-"+strconv.Itoa(os.Getuid()))
}

// listFolder makes the user's list of running brokers: one file each, with the path of its socket.
func listFolder() (string, error) {
	dir := ListFolder()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		why := err
		if at, ok := errors.AsType[*os.PathError](err); ok {
			why = at.Err
		}
		return "", message.Errorf(message.Unavailable, "the folder of the list of running brokers, %s,"+
			" cannot be made: %w; set TMPDIR to a folder that this user may write to", dir, why)
	}
	info, err := os.Lstat(dir) // a link may lead to any folder of this user
	if err != nil {
		return "", err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() ||
		info.Mode() != os.ModeDir|0o700 {
		return "", message.Errorf(message.Denied,
			"%s is not this user's alone; remove it or set TMPDIR", dir)
	}
	return dir, nil
}

func entryName(name string) string {
	return url.PathEscape(name) + "." + strconv.Itoa(os.Getpid())
}

func register(name, socket string) (string, error) {
	dir, err := listFolder()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(socket)
	if err != nil {
		return "", err
	}
	entry := filepath.Join(dir, entryName(name))
	return entry, os.WriteFile(entry, []byte(path), 0o600)
}

// Running gives the brokers of this user, by name, also those that hang. Entries of brokers that
// were killed are taken off the list, and the sockets go that they have left in its folder.
func Running(ctx context.Context) ([]*Client, error) {
	dir, err := listFolder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*Client
	// A broker that was killed and started again has the socket of its predecessor, whose entry is
	// older.
	sort.Slice(entries, func(i, j int) bool { return written(entries[i]).After(written(entries[j])) })
	seen := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		pid, ours := pidOf(e)
		if !ours {
			continue
		}
		socket, err := os.ReadFile(path)
		if err != nil || !filepath.IsAbs(string(socket)) ||
			filepath.Ext(string(socket)) != ".sock" {
			continue
		}
		if seen[string(socket)] {
			os.Remove(path)
			continue
		}
		seen[string(socket)] = true
		name, _ := url.PathUnescape(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		c := Dial(name, string(socket))
		c.PID = pid
		switch err := c.reach(ctx); {
		case err == nil:
			out = append(out, c)
		case gone(err):
			os.Remove(path)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default: // it is there and does not take the connection: Ping tells
			out = append(out, c)
		}
	}
	sweep(ctx, dir, entries)
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// sweep removes the sockets that killed brokers have left in the list's folder, which is this
// user's alone: those of our form of name, NAME.PID.sock, on which nobody listens and whose process
// is gone. Only both together say so: a process of another namespace is not seen and listens, and
// one that starts has its socket a moment before it listens.
func sweep(ctx context.Context, dir string, entries []os.DirEntry) {
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".sock")
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(name), "."))
		if !is || err != nil || pid <= 0 || e.Type() != os.ModeSocket ||
			syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if gone(Dial("", path).reach(ctx)) {
			os.Remove(path)
		}
	}
}

// pidOf gives the process that an entry of the list is of, and whether it is one.
func pidOf(e os.DirEntry) (pid int, ours bool) {
	pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(e.Name()), "."))
	return pid, err == nil && pid > 0 && e.Type().IsRegular()
}

func written(e os.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Client speaks to one broker.
type Client struct {
	Name string
	PID  int // of its process, 0 when that is not known
	http http.Client
	path string
}

// Dial makes a client for a socket; nothing is connected before the first call.
func Dial(name, socket string) *Client {
	return &Client{Name: name, path: socket, http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

// reach connects and hangs up.
func (c *Client) reach(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// gone reports whether an error of reach says that nobody listens there any more.
func gone(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// How long a broker may take to say that it is there, which needs neither its loop nor its disk,
// and to answer what needs both.
const (
	answerTime = 2 * time.Second
	lookTime   = 30 * time.Second
)

// Ping asks whether the broker's process answers at all.
func (c *Client) Ping(ctx context.Context) (*manage.Presence, error) {
	return within[manage.Presence](ctx, c, answerTime, "/ping", "its process is stopped, or stuck")
}

// within asks and gives up after a time; why is then the likely reason.
func within[T any](ctx context.Context, c *Client, most time.Duration, path, why string,
) (*T, error) {
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	answer, err := call[T](bounded, c, http.MethodGet, path)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, message.Errorf(message.Unavailable,
			"broker %s pid %d does not answer (within %v); %s", c.Name, c.PID, most, why)
	}
	return answer, err
}

// tooBusy is why a broker that is there does not tell more.
const tooBusy = "its process answers, its work is stuck or very slow: see its log"

// Status asks how the broker stands.
func (c *Client) Status(ctx context.Context) (*manage.Status, error) {
	return within[manage.Status](ctx, c, lookTime, "/status", tooBusy)
}

// Explain asks why a queue's messages, or one, are where they are.
func (c *Client) Explain(ctx context.Context, queue, id string) (*manage.Explanation, error) {
	q := url.Values{"queue": {queue}}
	if id != "" {
		q.Set("message", id)
	}
	return within[manage.Explanation](ctx, c, lookTime, "/explain?"+q.Encode(), tooBusy)
}

// Decide commits or rolls back a prepared transaction.
func (c *Client) Decide(ctx context.Context, xid string, commit bool) error {
	outcome := "rollback"
	if commit {
		outcome = commits
	}
	q := url.Values{"xid": {xid}, "outcome": {outcome}}
	_, err := call[struct{}](ctx, c, http.MethodPost, "/decide?"+q.Encode())
	return err
}

// Purge drops what waits in a queue and nobody has. It takes as long as that takes.
func (c *Client) Purge(ctx context.Context, queue string) (*manage.Purged, error) {
	q := url.Values{"queue": {queue}}
	return call[manage.Purged](ctx, c, http.MethodPost, "/purge?"+q.Encode())
}

// Remove deletes a destination that nobody uses.
func (c *Client) Remove(ctx context.Context, destination string) (*manage.Removed, error) {
	q := url.Values{"destination": {destination}}
	return call[manage.Removed](ctx, c, http.MethodPost, "/remove?"+q.Encode())
}

// RemoveDurable ends a durable subscription whose consumer is away.
func (c *Client) RemoveDurable(ctx context.Context, clientID, name string,
) (*manage.Removed, error) {
	q := url.Values{"client": {clientID}, "name": {name}}
	return call[manage.Removed](ctx, c, http.MethodPost, "/remove-durable?"+q.Encode())
}

// Stop begins a clean stop of the broker.
func (c *Client) Stop(ctx context.Context) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/stop")
	return err
}

func call[T any](ctx context.Context, c *Client, method, path string) (*T, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://broker"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, message.Errorf(message.Unavailable, "broker %s does not answer: %w", c.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var f failure
		if json.NewDecoder(resp.Body).Decode(&f) != nil || f.Error == "" {
			f.Error = resp.Status
		}
		if strings.HasPrefix(f.Error, "broker "+c.Name+" ") { // it names the broker itself
			return nil, message.Errorf(kinds[f.Kind], "%s", f.Error)
		}
		return nil, message.Errorf(kinds[f.Kind], "broker %s: %s", c.Name, f.Error)
	}
	out := new(T)
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return nil, fmt.Errorf("broker %s: its answer cannot be read: %w", c.Name, err)
	}
	return out, nil
}

// AwaitEnd waits until the broker no longer answers.
func (c *Client) AwaitEnd(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !gone(c.reach(ctx)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return message.Errorf(message.Unavailable, "broker %s has not stopped yet", c.Name)
		}
	}
	return nil
}
