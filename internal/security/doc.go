// Package security tells who a connection is. Simple is ActiveMQ's simpleAuthenticationPlugin:
// users with passwords and groups in the broker's own file.
package security
