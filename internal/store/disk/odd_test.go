//go:build unix

package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store/disk"
)

// What is no file in the place of one is damage as a file that is missing is: nobody waits for it,
// and a repair takes all that is not in it.
func TestWhatIsNoFileIsAMissingFile(t *testing.T) {
	pipe := func(name string) error {
		return errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600))
	}
	folder := func(name string) error {
		return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "in"), 0o700))
	}
	for _, c := range []struct {
		file        string
		least, most int
	}{{"*.sst", 200, 399}, {"*.log", 200, 399}, {"MANIFEST-*", 400, 400}, {"OPTIONS-*", 400, 400},
		{"known", 400, 400}, {"marker.manifest.*", 400, 400}, {"marker.format-version.*", 400, 400}} {
		for _, what := range []string{"a pipe", "a folder"} {
			dir := killed(t, 300)
			name := inDB(t, dir, c.file)
			replace := pipe
			if what == "a folder" {
				replace = folder
			}
			if err := replace(name); err != nil {
				t.Fatal(err)
			}
			tell := "db/" + filepath.Base(name) + " is " + what
			done := make(chan struct{})
			go func() {
				select {
				case <-done:
				case <-time.After(time.Minute):
					panic(tell + ": it is waited for")
				}
			}()
			n, err := countIn(t, dir)
			if message.KindOf(err) != message.Corrupt || !strings.Contains(err.Error(), tell) ||
				!strings.Contains(err.Error(), "run hopwire repair FILE") {
				t.Errorf("%s: %d messages, %v", tell, n, err)
			}
			r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
			if err != nil || r.Kept == "" || !strings.Contains(strings.Join(r.Others, "\n"), tell) {
				t.Errorf("%s: the repair says %+v, %v", tell, r, err)
			}
			if n, err := countIn(t, dir); err != nil || n < c.least || n > c.most {
				t.Errorf("%s: %d messages after it, %v", tell, n, err)
			}
			close(done)
		}
	}
}
