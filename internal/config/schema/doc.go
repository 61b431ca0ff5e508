// Package schema is what Hopwire knows of activemq.xml: each element, attribute, property and URI
// option with its type, its default and what becomes of it. The tables are data; package config
// checks and binds files by them, and the configuration reference is made of them, so that no page
// can tell anything else than what the reader does.
//
// A new setting is a row here, and a line in a binder of package config once it is honoured.
package schema
