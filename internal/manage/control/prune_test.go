package control

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"hopwire/test/need"
)

// socketAt leaves a socket behind as a killed process does; a live one listens.
func socketAt(t *testing.T, path string, live bool) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if live {
		t.Cleanup(func() { l.Close() })
		return
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

// deadPID is that of a process which has ended.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=NONE")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestAKilledBrokersSocketGoesWithItsEntryAndNothingElseDoes(t *testing.T) {
	serve(t)
	dir, err := listFolder()
	if err != nil {
		t.Fatal(err)
	}
	foreign := need.ShortDir(t)
	pid := deadPID(t)
	in := func(name string) string { return filepath.Join(dir, fmt.Sprintf(name, pid)) }
	entry := func(name, socket string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(socket), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names := func(dir string) (out []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.Name())
		}
		return out
	}
	before := names(dir)

	socketAt(t, in("killed.%d.sock"), false)
	entry("killed.%d", in("killed.%d.sock"))
	socketAt(t, in("unlisted.%d.sock"), false)
	entry("elsewhere.%d", filepath.Join(foreign, "control.sock"))

	socketAt(t, filepath.Join(foreign, "control.sock"), false)
	socketAt(t, filepath.Join(foreign, fmt.Sprintf("far.%d.sock", pid)), false)
	entry("far.%d", filepath.Join(foreign, fmt.Sprintf("far.%d.sock", pid)))
	kept := []string{"foreign.sock", fmt.Sprintf("file.%d.sock", pid),
		fmt.Sprintf("link.%d.sock", pid), fmt.Sprintf("listens.%d.sock", pid),
		fmt.Sprintf("mine.%d.sock", os.Getpid())}
	socketAt(t, filepath.Join(dir, kept[0]), false) // not our form of name
	entry("file.%d.sock", "no socket")
	if err := os.Symlink(filepath.Join(foreign, "control.sock"), in("link.%d.sock")); err != nil {
		t.Fatal(err)
	}
	socketAt(t, in("listens.%d.sock"), true) // of a process that this one does not see
	socketAt(t, filepath.Join(dir, kept[4]), false)

	if list := running(t); len(list) != 1 {
		t.Errorf("found %v, want b alone", list)
	}
	want := append(slices.Clone(before), kept...)
	slices.Sort(want)
	if got := names(dir); !slices.Equal(got, want) {
		t.Errorf("in the list's folder stay %q, want %q", got, want)
	}
	if got := names(foreign); len(got) != 2 {
		t.Errorf("in another folder stay %q", got)
	}
}
