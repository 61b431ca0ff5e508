package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hopwire/client"
	"hopwire/internal/message"
)

func TestHelpAndVersionAreFoundWhereTheyAreLookedFor(t *testing.T) {
	expect(t, exitDone, `^hopwire \d+\.\d+\.\d+ `, "--version")
	expect(t, exitDone, `^hopwire \d+\.\d+\.\d+ `, "version")
	expect(t, exitDone, `^Usage: hopwire <command>`)
	expect(t, exitDone, `^Usage: hopwire <command>`, "help")
	expect(t, exitDone, `^Usage: hopwire consumer`, "help", "consumer")
	expect(t, exitDone, `^Usage: hopwire explain`, "help", "explain")
	expect(t, exitUsage, `is called nonsense; there are start, demo, status, `, "help", "nonsense")
	expect(t, exitUsage, `unknown flag --colour; see hopwire help stop`, "stop", "--colour")
}

// ourWords are what kong writes for a value that nobody named.
var ourWords = regexp.MustCompile(`INT|STRING|UINT|DURATION|FLOAT`)

func TestHelpNamesWhatValuesAre(t *testing.T) {
	for _, verb := range []string{
		"start", "demo", "status", "explain", "stop", "transactions", "producer", "consumer", "browse",
	} {
		out, code := play(t, "help", verb)
		if code != exitDone {
			t.Errorf("help %s: exit %d\n%s", verb, code, out)
		}
		if w := ourWords.FindString(out); w != "" {
			t.Errorf("help %s has a value called %s\n%s", verb, w, out)
		}
	}
	for verb, wants := range map[string][]string{
		"producer": {"--msgTTL=MS", "--persistent=false", "--sleep=MS", "--amqurl"},
		"consumer": {"--sleep=MS", "500ms", "Exit codes:", "It keeps what is sent", "--amqurl"},
		"explain":  {"<destination>", "topic://NAME"},
		"browse":   {"--brokerUrl", "A.>", "--destination"},
		"start":    {"PropertyPlaceholderConfigurer", "5.18 and later"},
	} {
		out, _ := play(t, "help", verb)
		flat := strings.Join(strings.Fields(out), " ")
		for _, want := range wants {
			if !strings.Contains(flat, want) {
				t.Errorf("help %s does not say %q\n%s", verb, want, out)
			}
		}
	}
}

// reasonsOf reads the reason codes from their file.
func reasonsOf(t *testing.T) (list []message.Reason) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../message/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, message.Reason(text))
			}
		}
		return true
	})
	return list
}

func TestEveryReasonHasWordsAndIsInTheDocs(t *testing.T) {
	list := reasonsOf(t)
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 40 {
		t.Fatalf("%d reasons were found", len(list))
	}
	for _, r := range list {
		if r.Words() == "" {
			t.Errorf("status has no words for %s", r)
		}
		if !regexp.MustCompile(`(?m)^\| (\w+, )*` + string(r) + `\b`).Match(docs) {
			t.Errorf("docs/operations.md does not tell what %s means", r)
		}
	}
}

func TestARefusedLoginNamesItsOptions(t *testing.T) {
	for _, c := range []struct{ class, user, want string }{
		{"java.lang.SecurityException", "", "; give --user and --password"},
		{"java.lang.SecurityException", "u", "; see --user and --password"},
		{"javax.jms.InvalidClientIDException", "", ""},
	} {
		if got := loginCure(&client.BrokerError{Class: c.class}, c.user); got != c.want {
			t.Errorf("%s of user %q: %q, want %q", c.class, c.user, got, c.want)
		}
	}
}

// As of a shell's variable that is not set.
func TestAnEmptyNameIsNoDestination(t *testing.T) {
	for _, verb := range []string{"producer", "consumer", "browse", "explain", "purge"} {
		expect(t, exitUsage, `^hopwire: the name is empty\n`, verb, "")
		if verb != "explain" && verb != "purge" {
			expect(t, exitUsage, `^hopwire: the name is empty\n`, verb, "--destination", " ")
		}
	}
}
