// Package config reads ActiveMQ's activemq.xml: text, tree with places, typed configuration.
//
// A file goes through four steps. The reader (xml.go) makes a tree whose elements and attributes
// know their line and column. The resolver (placeholder.go) replaces ${name} from property files,
// definitions and the environment, and decrypts ENC(...). The builder (build.go) holds the tree
// against package schema, the table of all elements, attributes and URI options with their type,
// default and status; it finds what is unknown, misspelled or of wrong syntax, and notes what is
// known and not honoured. The binders (bind*.go) turn the checked beans into Config.
//
// Nothing is dropped in silence: a mistake is a Problem and the file is refused, everything else
// that does not do what it says is a Notice.
package config
