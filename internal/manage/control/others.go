package control

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Other is a broker of another user of this machine, as far as this one can see; or all there may
// be of a user whose list it may not read.
type Other struct {
	UID  int
	Name string // "" when the list may not be read
	PID  int
}

// Others gives the brokers of other users whose lists stand beside this user's. Nothing is asked of
// them, and what another user wrote is not believed further than that a process is there.
func Others() []Other { return others(os.TempDir(), os.Getuid()) }

func others(dir string, self int) (out []Other) {
	lists, err := filepath.Glob(filepath.Join(dir, "hopwire-*"))
	if err != nil {
		return nil // the pattern is right
	}
	for _, list := range lists {
		uid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(list), "hopwire-"))
		info, no := os.Lstat(list)
		if err != nil || no != nil || uid == self || !info.IsDir() {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != uid {
			continue
		}
		entries, err := os.ReadDir(list)
		if err != nil {
			out = append(out, Other{UID: uid})
			continue
		}
		for _, e := range entries {
			pid, is := pidOf(e)
			if !is || syscall.Kill(pid, 0) == syscall.ESRCH {
				continue
			}
			name, _ := url.PathUnescape(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
			out = append(out, Other{uid, name, pid})
		}
	}
	return out
}
