package cli

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire"
	"hopwire/test/need"
)

// What waits as a slave is said on standard output, since scripts read that, and in the log.
func TestASlavesLineStandsOnceOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var file strings.Builder
	for _, c := range []struct {
		name  string
		s     streams
		level slog.Level
		want  bool
	}{
		{"a terminal", streams{out: null, err: null}, slog.LevelInfo, true},
		{"with a log of more", streams{out: null, err: null}, slog.LevelDebug, true},
		{"with a log of warnings", streams{out: null, err: null}, slog.LevelWarn, false},
		{"the log goes to a file", streams{out: null, err: &file}, slog.LevelInfo, false},
		{"the output goes to a file", streams{out: &file, err: null}, slog.LevelInfo, false},
	} {
		if got := logSeen(&c.s, c.level); got != c.want {
			t.Errorf("%s: the log is seen there: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestABrokerThatFailsIsWhyTheOthersOfItsProcessStop(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := func(name, address string) string {
		path := filepath.Join(dir, name+".xml")
		text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName=%q
			persistent="false"><transportConnectors><transportConnector name="x" uri="tcp://%s"/>
			</transportConnectors></broker>`, name, address)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out, code := play(t, "start", file("one", "127.0.0.1:0"), file("two", taken.Addr().String()))
	why := regexp.MustCompile(`msg=stopping broker=one why="broker two of this process failed: .*` +
		regexp.QuoteMeta(taken.Addr().String()))
	if code != exitUnavailable || !why.MatchString(out) ||
		strings.Contains(out, "msg=ready") || strings.Contains(out, "\nready\n") {
		t.Errorf("start exits with %d and prints\n%s", code, out)
	}
}

// A service manager hears that the ports are open, and not before.
func TestTheServiceManagerHearsOfTheStart(t *testing.T) {
	dir := need.ShortDir(t)
	t.Setenv("TMPDIR", dir)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	socket, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "n"))
	hear := func(want string) {
		t.Helper()
		text := make([]byte, 1000)
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(text)
		if err != nil || !strings.Contains(string(text[:n]), want) {
			t.Errorf("heard %q, %v; want %q", text[:n], err, want)
		}
	}
	file := filepath.Join(dir, "m.xml")
	text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="m"
		dataDirectory=%q><transportConnectors><transportConnector name="x" uri="tcp://127.0.0.1:0"/>
		</transportConnectors></broker>`, filepath.Join(dir, "data"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(dir, "taken.xml")
	_, number, _ := strings.Cut(port.Addr().String(), ":")
	text = strings.NewReplacer(`"m"`, `"t"`, `:0"`, `:`+number+`"`).Replace(text)
	if err := os.WriteFile(taken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { expect(t, 0, `^ready\n.*^stopped\n`, "start", file) })
	hear("READY=1\nSTATUS=ready")
	expect(t, 0, `stopped`, "stop", "--broker", "m")
	running.Wait()
	two := &serviceManager{log: slog.Default(), up: make([]bool, 2)}
	two.started(1, "slave: store in use\n")
	two.stopping() // is heard next: one of two has not started
	hear("STOPPING=1")
	two.started(0, "ready")
	hear("READY=1\nSTATUS=ready")
	out, code := play(t, "start", file, taken)
	if code != exitUnavailable {
		t.Errorf("start exits with %d and prints\n%s", code, out)
	}
	hear("STOPPING=1")
}

// start --check opens nothing: its port is taken, and there is no folder afterwards.
func TestACheckTellsWhatAFileDoesAndStartsNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "m.xml")
	text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="m"
		dataDirectory=%q useVirtualDestSubs="true"><transportConnectors>
		<transportConnector name="x" uri="tcp://%s"/></transportConnectors></broker>`,
		filepath.Join(dir, "data"), taken.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, `^broker m  .*^  compat .*^  ignored   .*m.xml:2:[0-9]*: useVirtualDestSubs`,
		"start", "--check", file)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a check left %v, %v", left, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "useV", "useW", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitUsage, `useWirtualDestSubs`, "start", "--check", file)
}

// What start prints of a broker, and what it warns of when it begins, a check prints too.
func TestACheckShowsWhatStartWouldOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.xml")
	store := filepath.Join(dir, "data", "m", "KahaDB")
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store, "db-1.log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="m"
		dataDirectory=%q deleteAllMessagesOnStartup="true"><transportConnectors>
		<transportConnector name="x" uri="tcp://0.0.0.0:61699?maximumConnections=9"/>
		<transportConnector name="any" uri="nio://127.0.0.1:0" discoveryUri="multicast://default"/>
		<transportConnector name="shut" uri="tcp://127.0.0.1:7" autoStart="false"/>
		</transportConnectors><networkConnectors>
		<networkConnector name="north" uri="static:(tcp://a:1?wireFormat.version=9,tcp://b:2)"/>
		<networkConnector name="pair" uri="masterslave:(tcp://c:3,tcp://d:4)"/>
		<networkConnector name="still" uri="static:(tcp://e:5)" autoStart="false"/>
		<networkConnector name="group" uri="multicast://default"/>
		</networkConnectors></broker>`, filepath.Join(dir, "data"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitDone, `^broker m  \(`+file+`\)
  listens   x  tcp://0\.0\.0\.0:61699
  listens   any  nio://127\.0\.0\.1:0
  store     `+store+`
  limits    memory [^\n]*
  bridge    north to tcp://a:1
  bridge    north to tcp://b:2
  bridge    pair to tcp://c:3, of 2 addresses
  bridge    still to tcp://e:5: STOPPED
  bridge    group to multicast://default: NOT_HONOURED
  compat    [^\n]*
`, "start", "--check", file)
	for _, warning := range []string{
		`connector x is open to the network and there is no authentication`,
		`connector any is not announced`, `network connector group never connects`,
		`deleteAllMessagesOnStartup: the store ` + store + ` is emptied`,
		`the folder ` + store + ` has 1 KahaDB journal \(1 KiB\), not read`,
	} {
		expect(t, exitDone, `^  warning   [^\n]*`+warning, "start", "--check", file)
	}
	expect(t, exitUsage, `open to the network.*refused by --strict-listeners`, "start", "--check",
		"--strict-listeners", file)
	plain := `<broker xmlns="http://activemq.apache.org/schema/core" persistent="false"/>`
	if err := os.WriteFile(file, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitDone, `listens   nowhere: .*store     none: persistent`, "start", "--check", file)
}

func TestAFileIsNamedAsForActiveMQ(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"a.xml": here + "/a.xml", "xbean:a.xml": here + "/a.xml", "xbean:file:a.xml": here + "/a.xml",
		"file:conf/a.xml": here + "/conf/a.xml", "xbean:file:///etc/a.xml": "/etc/a.xml",
		"xbean:/etc/a.xml?validate=false": "/etc/a.xml", "file://localhost/etc/a.xml": "/etc/a.xml",
		"a:b.xml":                       here + "/a:b.xml",
		"xbean:file:/a%20b+c.xml?x=%zz": "/a b+c.xml", "file:///a%25.xml": "/a%.xml",
		"xbean:a%C3%A9.xml": here + "/a\u00e9.xml", "/a%20b.xml": "/a%20b.xml",
		"file:/a%2.xml": "", "xbean:a%zz.xml": "",
		"broker:(tcp://localhost:61616)?": "", "xbean:http://host/a.xml": "", "xbean:": "",
		"properties:a.properties": "",
	} {
		got, err := fileOf(arg)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, %v, want %q", arg, got, err, want)
		}
	}
	expect(t, exitUsage, `no/such.xml`, "start", "xbean:file:no/such.xml")
}

func TestCommandsOfActiveMQNameOursInstead(t *testing.T) {
	for word, want := range map[string]string{
		"bstat": "hopwire status", "dstat": "hopwire status", "query": "hopwire status",
		"list": "hopwire status", "restart": "hopwire stop", "console": "hopwire start",
		"export": "hopwire browse",
	} {
		expect(t, exitUsage, `^hopwire: `+word+` is a command of ActiveMQ; here .*`+want+`[^\n]*\n$`,
			word, "--amqurl", "tcp://localhost:61616")
		expect(t, exitUsage, `^hopwire: `+word+` is a command of ActiveMQ; `, "help", word)
	}
	expect(t, exitUsage, `^hopwire: no command is called check; hopwire start --check FILE`, "check",
		"x.xml")
	expect(t, exitUsage, `no command is called frob|unexpected argument frob`, "frob")
}

// Two that would listen on one port are found before any of them starts.
func TestTwoListenersOfOnePortAreFound(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, uris ...string) string {
		path := filepath.Join(dir, name+".xml")
		text := `<broker xmlns="http://activemq.apache.org/schema/core" brokerName="` + name +
			"\" persistent=\"false\"><transportConnectors>\n"
		for i, u := range uris {
			text += fmt.Sprintf("<transportConnector name=\"c%d\" uri=\"%s\"/>\n", i, u)
		}
		text += `</transportConnectors></broker>`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, c := range []struct {
		a, b  []string
		meets string
	}{
		{[]string{"tcp://127.0.0.1:61616"}, []string{"tcp://127.0.0.1:61616"},
			`a0\.xml:2:1 and [^\n]*b0\.xml:2:1 both listen on port 61616 of 127\.0\.0\.1`},
		{[]string{"tcp://0.0.0.0:61616"}, []string{"tcp://127.0.0.2:1", "nio://127.0.0.1:61616"},
			`b1\.xml:3:1 both listen on port 61616: 0\.0\.0\.0 is every address, 127\.0\.0\.1 among`},
		{[]string{"tcp://0.0.0.0:7"}, []string{"tcp://[::]:7"}, `port 7 of every address`},
		{[]string{"tcp://localhost:61616"}, []string{"tcp://127.0.0.1:61616"}, `both listen`},
		{[]string{"tcp://127.0.0.1:1", "tcp://[::]:1"}, nil,
			`a4\.xml:2:1 and [^\n]*a4\.xml:3:1 both listen on port 1`},
		{[]string{"tcp://127.0.0.1:61616"}, []string{"tcp://127.0.0.1:61617"}, ""},
		{[]string{"tcp://127.0.0.1:61616"}, []string{"tcp://127.0.0.2:61616"}, ""},
		{[]string{"tcp://127.0.0.1:0"}, []string{"tcp://127.0.0.1:0"}, ""},
	} {
		a, b := file(fmt.Sprintf("a%d", i), c.a...), file(fmt.Sprintf("b%d", i), c.b...)
		if c.meets != "" {
			expect(t, exitUsage, c.meets, "start", "--check", a, b)
			continue
		}
		expect(t, exitDone, `broker b.*\n  checked   the file and the disk; addresses and ports are`,
			"start", "--check", a, b)
	}
}

func TestAConnectorWithoutANameIsItsAddress(t *testing.T) {
	for name, want := range map[string]string{"c": "c  ", "tcp://a:1": "", "tcp://a:1?x=y": "",
		"tcp://a:12": "tcp://a:12  "} {
		if got := before(name, "tcp://a:1"); got != want {
			t.Errorf("%q before tcp://a:1 is %q, want %q", name, got, want)
		}
	}
}

// An error with the stack of its making in its long form is one line in the log.
func TestAnErrorInTheLogIsOneLine(t *testing.T) {
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: inOneLine})).
		Warn("w", "error", longError{}, "n", 1)
	if got := out.String(); !strings.HasSuffix(got, "msg=w error=short n=1\n") {
		t.Errorf("the line is %q", got)
	}
}

// longError is an error that %+v shows more of.
type longError struct{}

func (longError) Error() string { return "short" }

// Format implements fmt.Formatter.
func (longError) Format(f fmt.State, _ rune) { fmt.Fprint(f, "short\nstack") }

// Whatever keeps a folder from being made, the exit code is one.
func TestAFolderThatCannotBeMadeIsUnavailable(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"/proc/nope", filepath.Join(plain, "x")} {
		file := filepath.Join(dir, "f.xml")
		text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="f"
			dataDirectory=%q/>`, data)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, exitUnavailable, `cannot make the folder`, "start", file)
	}
}

func TestADurableConsumerOfAQueueIsAWrongCommandLine(t *testing.T) {
	expect(t, exitUsage, `--durable is for topics, and this is queue://q; write topic://q`, "consumer",
		"--brokerUrl", "tcp://127.0.0.1:1", "--durable", "--clientId", "me", "queue://q")
}

// A definition is of use when one of the files has it.
func TestADefinitionThatNothingUsesIsTold(t *testing.T) {
	var files []string
	for _, name := range []string{"here", "there"} {
		file := filepath.Join(t.TempDir(), name+".xml")
		text := `<beans xmlns="http://www.springframework.org/schema/beans"><bean class="org.` +
			`springframework.beans.factory.config.PropertyPlaceholderConfigurer"/><broker brokerName="` +
			name + `${` + name + `}" persistent="false" dataDirectory="${activemq.data}"/></beans>`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	args := append([]string{"start", "--check"}, files...)
	args = append(args, "-D", "here=1", "-D", "there=2", "-D", "activemq.base=/tmp", "-D", "hree=3")
	expect(t, 0, `^hopwire [^\n]*\n-D hree is used by no placeholder\nbroker here1 .*^broker there2 `,
		args...)
}

// What a file's limits come to is told, with what the shares in it are of.
func TestLimitsAreTold(t *testing.T) {
	for _, c := range []struct {
		limits hopwire.Limits
		want   string
	}{
		{hopwire.Limits{MemoryBytes: 64 << 20}, "memory 64.0 MiB"},
		{hopwire.Limits{MemoryBytes: 7 << 20, OfHeap: 70, HeapBytes: 10 << 20, Stored: true,
			StoreBytes: 100 << 30}, "memory 7.0 MiB (70 % of 10.0 MiB, which stands for the Java heap)," +
			" store 100.0 GiB, temp without limit"},
		{hopwire.Limits{MemoryBytes: 1 << 20, Stored: true, StoreBytes: 100 << 30, StoreFree: 3 << 30,
			TempBytes: 50 << 30}, "memory 1.0 MiB, store 100.0 GiB (its disk has 3.0 GiB free)," +
			" temp 50.0 GiB"},
	} {
		if got := limits(c.limits); got != c.want {
			t.Errorf("%+v: %q, want %q", c.limits, got, c.want)
		}
	}
}

func TestACheckTellsLimitsAndTheWholePathOfTheStore(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "activemq.xml")
	if err := os.WriteFile(file, []byte(`<broker xmlns="http://activemq.apache.org/schema/core"`+
		` brokerName="b" dataDirectory="data"><systemUsage><systemUsage><storeUsage><storeUsage`+
		` limit="5 gb"/></storeUsage></systemUsage></systemUsage></broker>`), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitDone, `\n  store     `+regexp.QuoteMeta(filepath.Join(dir, "data/b/KahaDB"))+
		`\n            data/b/KahaDB begins at the folder of the start: from another it is another store`+
		`\n  limits    memory 1.0 GiB, store 5.0 GiB, temp 50.0 GiB( \(its disk has [^)]* free\))?\n`+
		`(  compat .*\n)  checked `, "start", "--check", file)
}
