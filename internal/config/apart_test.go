package config

import (
	"strings"
	"testing"
)

// What is wiped at start is not where anything is kept, and not among the store's files.
func TestASpoolIsApartFromWhatIsKept(t *testing.T) {
	kahaDB := func(dir string) string {
		return `<persistenceAdapter><kahaDB directory="` + dir + `"/></persistenceAdapter>`
	}
	for _, tt := range []struct{ attributes, inside, want string }{
		{``, ``, ""},
		{``, kahaDB("data"), ""},
		{``, kahaDB("data/b"), ""},
		{``, kahaDB("data/b/tmp_storage"), "among the store's files"},
		{``, kahaDB("data/b/tmp_storage/b.hopwire"), "the store data/b/tmp_storage/b.hopwire is in"},
		{`tmpDataDirectory="x"`, kahaDB("x/c.hopwire"), ""},
		{`tmpDataDirectory="x"`, kahaDB("x/b.hopwired"), ""},
		{`tmpDataDirectory="x"`, kahaDB("x/b.hopwire"), "the store x/b.hopwire is in the folder x/b.h"},
		{`tmpDataDirectory="x"`, kahaDB("y/../x/b.hopwire/store"), "is in the folder x/b.hopwire"},
		{`tmpDataDirectory="x" dataDirectoryFile="x/b.hopwire"`, kahaDB("y"), "the dataDirectory x/b."},
		{`tmpDataDirectory="data/b/KahaDB"`, ``, "among the store's files in data/b/KahaDB"},
		{`tmpDataDirectory="data/b/KahaDB/db"`, ``, "among the store's files in data/b/KahaDB"},
		{`tmpDataDirectory="x/tmp"`, kahaDB("x"), ""},
		{`tmpDataDirectory="y"`, `<tempDataStore><pListStoreImpl directory="x"/></tempDataStore>` +
			kahaDB("x/b.hopwire"), "the store x/b.hopwire is in the folder x/b.hopwire"},
		{`tmpDataDirectory="x" persistent="false"`, kahaDB("x/b.hopwire"), ""},
	} {
		_, err := parse(t, `brokerName="b" dataDirectory="data" `+tt.attributes, tt.inside, Options{})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %s: %v", tt.attributes, tt.inside, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "name another tmpDataDirectory")):
			t.Errorf("%s %s: %v, want %q", tt.attributes, tt.inside, err, tt.want)
		}
	}
}
