package transport

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portHolder names the process that listens on a port, "" where it is not known: of processes of
// other users the system tells root alone.
func portHolder(port string) string {
	sockets := listeningSockets(port)
	if len(sockets) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is none that can fail
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && sockets[to] {
			pid := strings.Split(file, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm") // it may be gone: then it has no name
			return fmt.Sprintf("pid %s (%s)", pid, strings.TrimSpace(string(name)))
		}
	}
	return ""
}

// listeningSockets are the sockets that listen on a port, as links of open files name them.
func listeningSockets(port string) map[string]bool {
	const listening, fields = "0A", 10
	out := map[string]bool{}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // without IPv6 there is none
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) >= fields && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				out["socket:["+f[9]+"]"] = true
			}
		}
	}
	return out
}
