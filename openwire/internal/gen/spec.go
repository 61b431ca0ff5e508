// Package gen writes the generated part of package openwire from spec/commands.json: the
// structures, their type ids, and for each structure one encode and one decode function that list
// its fields in wire order with their version conditions.
package gen

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Spec is the part of commands.json that the generator uses.
type Spec struct {
	TypeIDs map[string]int `json:"typeIds"`
	Types   []Type         `json:"types"`
}

// Type is one structure of the protocol; abstract ones have no TypeID.
type Type struct {
	Name          string   `json:"name"`
	TypeID        int      `json:"typeId"`
	Abstract      bool     `json:"abstract"`
	Since         int      `json:"since"`
	Chain         []string `json:"chain"`
	MarshallAware bool     `json:"marshallAware"`
	Fields        []Field  `json:"fields"`
}

// Field is one field in wire order; Until is 0 when it is still there.
type Field struct {
	Name       string `json:"name"`
	Wire       string `json:"wire"`
	ObjectType string `json:"objectType"`
	Cached     bool   `json:"cached"`
	Since      int    `json:"since"`
	Until      int    `json:"until"`
}

const (
	firstMessageType     = 23
	lastMessageType      = 29
	firstDestinationType = 100
	lastDestinationType  = 103
)

// structure is one Go struct to generate.
type structure struct {
	name   string
	typeID int // 0 for Message and Destination, whose Type field says it
	since  int
	base   bool // embeds BaseCommand
	aware  bool
	fields []field
}

type field struct {
	Field
	goName string
	goType string
	owner  string // structure name
	blob   bool   // only in blob messages
}

// load parses the spec and folds it into the Go structs: the seven messages are one, as are the
// four destinations.
func load(raw []byte) ([]structure, Spec, error) {
	var spec Spec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, spec, fmt.Errorf("commands.json: %w", err)
	}
	byName := map[string]Type{}
	for _, t := range spec.Types {
		byName[t.Name] = t
	}
	var all []structure
	for _, t := range spec.Types {
		if t.Abstract || t.Name == "ActiveMQQueue" {
			continue
		}
		s := structure{name: t.Name, typeID: t.TypeID, since: t.Since, aware: t.MarshallAware}
		switch {
		case t.Name == "ActiveMQBlobMessage":
			s.name, s.typeID, s.since = "Message", 0, 1
		case t.Name == "ActiveMQTopic":
			s.name, s.typeID = "Destination", 0
		case t.TypeID >= firstMessageType && t.TypeID < lastMessageType,
			t.TypeID > firstDestinationType && t.TypeID <= lastDestinationType:
			continue
		}
		for _, c := range t.Chain {
			s.base = s.base || c == "BaseCommand"
			for _, f := range byName[c].Fields {
				s.fields = append(s.fields, newField(s.name, c, f))
			}
		}
		all = append(all, s)
	}
	return all, spec, nil
}

func newField(owner, declared string, f Field) field {
	g := field{Field: f, owner: owner, goName: goName(owner, f.Name)}
	g.blob = declared == "ActiveMQBlobMessage"
	switch f.Wire {
	case "bool", "string":
		g.goType = f.Wire
	case "byte":
		g.goType = "byte"
		if f.Name == "priority" {
			g.goType = "int8"
		}
	case "int":
		g.goType = "int32"
	case "long":
		g.goType = "int64"
	case "bytes":
		g.goType = "[]byte"
	case "constBytes":
		g.goType = "[8]byte"
	case "throwable":
		g.goType = "*Throwable"
	case "object":
		g.goType = objectType(f.ObjectType)
	case "objectArray":
		g.goType = "[]" + objectType(f.ObjectType)
	default:
		panic("commands.json: unknown wire type " + f.Wire)
	}
	return g
}

// element is the name under which the codec's functions for an object type go.
func element(objectType string) string {
	switch objectType {
	case "ActiveMQDestination":
		return "Destination"
	case "BooleanExpression":
		return "NetworkBridgeFilter"
	case "DataStructure":
		return "Any"
	}
	return objectType
}

func objectType(t string) string {
	switch t {
	case "DataStructure", "TransactionId":
		return t
	}
	return "*" + element(t)
}

// fieldNames are the Go names that the rule of goName does not give.
var fieldNames = map[string]string{
	"brokerUploadUrl": "BrokerUploadURL", "remoteBlobUrl": "RemoteBlobURL",
	"clientIp": "ClientIP", "mimeType": "MIMEType",
	"jmsxGroupFirstForConsumer": "JMSXGroupFirstForConsumer",
}

func goName(owner, name string) string {
	if owner == "Message" && name == "type" {
		return "JMSType"
	}
	if n := fieldNames[name]; n != "" {
		return n
	}
	if n, ok := strings.CutSuffix(name, "Id"); ok {
		name = n + "ID"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// typeConst is the Go constant of a concrete protocol type.
func typeConst(name string) string { return "Type" + strings.TrimPrefix(name, "ActiveMQ") }
