package broker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// errNoCommand says that this tree has no hopwire command.
var errNoCommand = errors.New("this tree has no cmd/hopwire")

// hopwire is the command of this tree's own broker.
func (b *Broker) hopwire() *exec.Cmd {
	b.t.Helper()
	builder := buildTested
	if b.o.Bench {
		builder = buildPlain
	}
	binary, err := builder()
	if errors.Is(err, errNoCommand) {
		b.t.Skip(err)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	args := []string{"start"}
	if b.o.Compat != 0 {
		args = append(args, fmt.Sprintf("--compat=%d", b.o.Compat))
	}
	cmd := exec.Command(binary, append(args, filepath.Join(b.dir, "activemq.xml"))...)
	cmd.Dir = b.dir
	return cmd
}

// Command is a command line of the tested hopwire binary, to be run by the caller.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := buildTested()
	if errors.Is(err, errNoCommand) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(binary, args...)
}

// The hopwire binary is built at most once in this process, with heavy assertions or without.
var (
	buildTested = sync.OnceValues(func() (string, error) { return build("test", "invariants") })
	buildPlain  = sync.OnceValues(func() (string, error) { return build("bench", "") })
)

// Has reports whether this tree can make brokers of a kind.
func Has(k Kind) bool {
	if k != Hopwire {
		return true
	}
	root, err := moduleRoot()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(root, "cmd", "hopwire"))
	return err == nil
}

// build makes a binary in the tree's folder bin. It is moved into place, so that test processes
// beside this one may do the same.
func build(name, tags string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if !Has(Hopwire) {
		return "", errNoCommand
	}
	binary := filepath.Join(root, "bin", "hopwire-"+name)
	fresh := fmt.Sprintf("%s-%d", binary, os.Getpid())
	cmd := exec.Command("go", "build", "-tags", tags, "-o", fresh, "./cmd/hopwire")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/hopwire: %w\n%s", err, out)
	}
	return binary, os.Rename(fresh, binary)
}

// moduleRoot is the folder with the go.mod of the tree that this file was compiled from.
func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("the compiler left no file names")
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s", file)
		}
	}
}
