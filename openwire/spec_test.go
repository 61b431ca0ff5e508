package openwire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The tests read field lists from the spec themselves and reach the structs by reflection, so
// that a generated file in the wrong order cannot agree with them.

type specType struct {
	Name     string
	TypeID   int
	Abstract bool
	Chain    []string
	Fields   []specField
}

type specField struct {
	Name, Wire   string
	Since, Until int
}

var specTypes = func() map[string]specType {
	raw, err := os.ReadFile("spec/commands.json")
	if err != nil {
		panic(err)
	}
	var spec struct{ Types []specType }
	if err := json.Unmarshal(raw, &spec); err != nil {
		panic(err)
	}
	m := map[string]specType{}
	for _, t := range spec.Types {
		m[t.Name] = t
	}
	return m
}()

// goField finds a struct field by its spec name, whatever the case of its letters.
func goField(v reflect.Value, name string) reflect.Value {
	if name == "type" && v.Type() == reflect.TypeFor[Message]() {
		name = "jmsType"
	}
	f := v.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
	if !f.IsValid() {
		panic(fmt.Sprintf("%s has no field %s", v.Type(), name))
	}
	return f
}

// emptyBit is the bit in Empty of a struct's string field: its place among the strings.
func emptyBit(v reflect.Value, field string) EmptyStrings {
	bit := EmptyStrings(1)
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.String {
			continue
		}
		if name := v.Type().Field(i).Name; strings.EqualFold(name, field) ||
			field == "type" && name == "JMSType" {
			return bit
		}
		bit <<= 1
	}
	panic("no string field " + field)
}

func specFields(name string, version int) (fields []specField) {
	for _, c := range specTypes[name].Chain {
		for _, f := range specTypes[c].Fields {
			if f.Since <= version && (f.Until == 0 || version <= f.Until) {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// fieldsOf turns a decoded structure into the form of the vectors.
func fieldsOf(x DataStructure, version int) any {
	if x == nil || reflect.ValueOf(x).IsNil() {
		return nil
	}
	v := reflect.ValueOf(x).Elem()
	out := map[string]any{"_type": TypeName(x.TypeID())}
	for _, f := range specFields(TypeName(x.TypeID()), version) {
		out[f.Name] = fieldOf(v, f, version)
	}
	return out
}

func fieldOf(v reflect.Value, f specField, version int) any {
	g := goField(v, f.Name)
	switch f.Wire {
	case "bool":
		return g.Bool()
	case "byte":
		if g.Kind() == reflect.Uint8 {
			return json.Number(fmt.Sprint(int8(g.Uint())))
		}
		return json.Number(fmt.Sprint(g.Int()))
	case "int", "long":
		return json.Number(fmt.Sprint(g.Int()))
	case "string":
		empty := EmptyStrings(v.FieldByName("Empty").Uint())
		if g.String() == "" && empty&emptyBit(v, f.Name) == 0 {
			return nil
		}
		return g.String()
	case "bytes":
		if g.IsNil() {
			return nil
		}
		return hex.EncodeToString(g.Bytes())
	case "constBytes":
		raw := g.Interface().([8]byte)
		return hex.EncodeToString(raw[:])
	case "throwable":
		return throwableFields(g.Interface().(*Throwable))
	case "object":
		if g.IsNil() {
			return nil
		}
		return fieldsOf(g.Interface().(DataStructure), version)
	}
	if g.IsNil() {
		return nil
	}
	list := []any{}
	for i := range g.Len() {
		if g.Index(i).IsNil() {
			list = append(list, nil)
			continue
		}
		list = append(list, fieldsOf(g.Index(i).Interface().(DataStructure), version))
	}
	return list
}

func throwableFields(x *Throwable) any {
	if x == nil {
		return nil
	}
	out := map[string]any{"class": x.Class, "message": any(x.Message), "cause": nil}
	if x.NoMessage {
		out["message"] = nil
	}
	stack := []any{}
	for _, s := range x.Stack {
		e := map[string]any{"class": s.Class, "method": s.Method, "file": any(s.File),
			"line": json.Number(fmt.Sprint(s.Line))}
		if s.File == "" {
			e["file"] = nil
		}
		stack = append(stack, e)
	}
	out["stack"], out["cause"] = stack, throwableFields(x.Cause)
	return out
}

// fromFields is fieldsOf backwards.
func fromFields(fields any, version int) DataStructure {
	if fields == nil {
		return nil
	}
	m := fields.(map[string]any)
	name := m["_type"].(string)
	t := byte(specTypes[name].TypeID)
	var x DataStructure
	switch {
	case isMessage(t):
		x = &Message{Type: t}
	case isDestination(t):
		x = &Destination{Type: t}
	default:
		x = reflect.New(structTypes[name]).Interface().(DataStructure)
	}
	v := reflect.ValueOf(x).Elem()
	for _, f := range specFields(name, version) {
		if m[f.Name] != nil {
			setField(v, f, m[f.Name], version)
		}
	}
	return x
}

// structTypes are the Go structs by protocol name, from what the decoder makes of each type.
var structTypes = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for name, t := range specTypes {
		if t.Abstract {
			continue
		}
		d := NewDecoder(Format{Version: 12})
		d.begin(append([]byte{byte(t.TypeID)}, make([]byte, 1000)...))
		m[name] = reflect.TypeOf(d.structure(byte(t.TypeID))).Elem()
	}
	return m
}()

func setField(v reflect.Value, f specField, value any, version int) {
	g := goField(v, f.Name)
	switch f.Wire {
	case "bool":
		g.SetBool(value.(bool))
	case "byte", "int", "long":
		n, err := value.(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		if g.Kind() == reflect.Uint8 {
			g.SetUint(uint64(byte(n)))
			return
		}
		g.SetInt(n)
	case "string":
		g.SetString(value.(string))
		if value == "" {
			e := v.FieldByName("Empty")
			e.SetUint(e.Uint() | uint64(emptyBit(v, f.Name)))
		}
	case "bytes":
		g.SetBytes(unhex(value))
	case "constBytes":
		reflect.Copy(g, reflect.ValueOf(unhex(value)))
	case "throwable":
		g.Set(reflect.ValueOf(throwableFrom(value)))
	case "object":
		g.Set(reflect.ValueOf(fromFields(value, version)))
	case "objectArray":
		list := reflect.MakeSlice(g.Type(), len(value.([]any)), len(value.([]any)))
		for i, e := range value.([]any) {
			if e != nil {
				list.Index(i).Set(reflect.ValueOf(fromFields(e, version)))
			}
		}
		g.Set(list)
	}
}

func throwableFrom(value any) *Throwable {
	if value == nil {
		return nil
	}
	m := value.(map[string]any)
	x := &Throwable{Class: m["class"].(string), NoMessage: m["message"] == nil}
	x.Message, _ = m["message"].(string)
	for _, s := range m["stack"].([]any) {
		e := s.(map[string]any)
		line, _ := e["line"].(json.Number).Int64()
		file, _ := e["file"].(string)
		x.Stack = append(x.Stack, StackElement{e["class"].(string), e["method"].(string), file,
			int32(line)})
	}
	x.Cause = throwableFrom(m["cause"])
	return x
}

func unhex(value any) []byte {
	b, err := hex.DecodeString(value.(string))
	if err != nil {
		panic(err)
	}
	return b
}

// vector is one line of the golden vectors.
type vector struct {
	Case       string
	Seq        int
	Version    int
	Tight      bool
	Cache      bool
	StackTrace bool
	CacheSize  int
	Type       string
	Fields     map[string]any
	Properties map[string]any
	Body       map[string]any
	Hex        string
}

func (v vector) format() Format {
	return Format{Version: v.Version, Tight: v.Tight, Cache: v.Cache, CacheSize: v.CacheSize,
		StackTrace: v.StackTrace}
}

func (v vector) String() string {
	return fmt.Sprintf("%s/%d %s v%d tight=%t cache=%t", v.Case, v.Seq, v.Type, v.Version, v.Tight,
		v.Cache)
}

func (v vector) frame() []byte { return unhex(v.Hex) }

var vectorFile = func() []vector {
	f, err := os.Open("testdata/vectors.jsonl.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	var all []vector
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var v vector
		decodeJSON(lines.Bytes(), &v)
		all = append(all, v)
	}
	return all
}()

// decodeJSON keeps 64-bit numbers exact.
func decodeJSON(raw []byte, into any) {
	j := json.NewDecoder(bytes.NewReader(raw))
	j.UseNumber()
	if err := j.Decode(into); err != nil {
		panic(err)
	}
}

// normal gives every throwable its stack and cause, which the vectors leave out when no stack
// traces were agreed.
func normal(x any) any {
	switch x := x.(type) {
	case map[string]any:
		if _, ok := x["message"]; ok && x["_type"] == nil && x["stack"] == nil {
			x["stack"], x["cause"] = []any{}, nil
		}
		for k, v := range x {
			x[k] = normal(v)
		}
	case []any:
		for i, v := range x {
			x[i] = normal(v)
		}
	}
	return x
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Errorf("%s\n got %s\nwant %s", what, g, w)
	}
}
