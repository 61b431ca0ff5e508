package config

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"
)

// wide is a text in UTF-16.
func wide(order binary.AppendByteOrder, text string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return out
}

func TestFilesInUTF16AreRead(t *testing.T) {
	const declared = `<?xml version="1.0" encoding="UTF-16"?>`
	const broker = `<broker brokerId="größe𝄞"/>`
	for name, data := range map[string][]byte{
		"big, with a mark":                  wide(binary.BigEndian, "\ufeff"+declared+broker),
		"little, with a mark":               wide(binary.LittleEndian, "\ufeff"+declared+broker),
		"little, a mark and no declaration": wide(binary.LittleEndian, "\ufeff"+broker),
		"big, declared alone":               wide(binary.BigEndian, declared+broker),
	} {
		c, err := Parse("f.xml", data, Options{})
		if err != nil || c.Broker().ID != "größe𝄞" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Parse("f.xml", data[:len(data)-1], Options{}); err == nil ||
			err.Error() != "f.xml:1:1: is UTF-16 that ends within a character, or has half of one" {
			t.Errorf("%s, without its last byte: %v", name, err)
		}
	}
	half := append(wide(binary.BigEndian, "\ufeff<a>"), 0xd8, 0x34, 0x00, 0x20)
	if _, err := Parse("f.xml", half, Options{}); err == nil {
		t.Error("half a character is taken")
	}
	if _, err := Parse("f.xml", []byte(declared+broker), Options{}); err == nil {
		t.Error("UTF-8 is taken for UTF-16")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p"), wide(binary.LittleEndian, "\ufeffname=größe\n"))
	c, err := Load(withProperties(t, dir, "p", ""), Options{})
	if err != nil || c.Broker().ID != "größe" {
		t.Errorf("a property file: %v", err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// withProperties is a configuration whose broker's name is in a property file.
func withProperties(t *testing.T, dir, file, property string) string {
	t.Helper()
	path := filepath.Join(dir, "a.xml")
	write(t, path, fmt.Appendf(nil, `<beans><bean class="PropertyPlaceholderConfigurer">`+
		`<property name="location" value="file:%s"/>%s</bean><broker brokerId="${name}"/></beans>`,
		filepath.Join(dir, file), property))
	return path
}

func TestNoMoreOfAFileIsReadThanItMayHave(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	long, err := os.Create(in("long"))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if err := long.Truncate(1 << 40); err != nil { // no memory has that
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", in("zero")); err != nil {
		t.Fatal(err)
	}
	const optional = `<property name="ignoreResourceNotFound" value="true"/>`
	for file, want := range map[string]string{
		"long": "larger than 4194304 bytes",
		"zero": "is no regular file",
		".":    "is a folder",
		"none": "no such file or directory",
	} {
		if _, err := Load(in(file), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as configuration: %v", file, err)
		}
		_, err := Load(withProperties(t, dir, file, ""), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s as property file: %v", file, err)
		}
	}
	for file, missing := range map[string]bool{"long": false, "zero": false, "none": true} {
		_, err = Load(withProperties(t, dir, file, optional), Options{Defines: map[string]string{
			"name": "defined"}})
		if (err == nil) != missing {
			t.Errorf("%s, which need not be there: %v", file, err)
		}
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(in("pipe"), []byte(`<broker brokerName="piped"/>`), 0) }()
	if c, err := Load(in("pipe"), Options{}); err != nil || c.Broker().Name != "piped" {
		t.Errorf("a pipe: %v", err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
