package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A file of one line, or with very many mistakes, is read in about the time that others take.
func TestNoFileIsReadForLong(t *testing.T) {
	if testing.Short() {
		t.Skip("large files; -short leaves them out")
	}
	const users = `<plugins><simpleAuthenticationPlugin><users>%s</users>` +
		`</simpleAuthenticationPlugin><authorizationPlugin><map><authorizationMap>` +
		`<authorizationEntries>%s</authorizationEntries></authorizationMap></map></authorizationPlugin>` +
		`</plugins>`
	for name, text := range map[string]string{
		"elements on a line": `<broker><destinations>` + many(99_000, `<queue physicalName="q%d"/>`) +
			`</destinations></broker>`,
		"unknown elements": `<broker>` + many(99_000, `<foo%d/>`) + `</broker>`,
		"unknown attributes": `<broker><destinations>` +
			many(50_000, `<queue a%d="" b%[1]d="" c="" d=""/>`) + `</destinations></broker>`,
		"attributes of an element": `<broker ` + many(300_000, `a%d="" `) + `/>`,
		"texts between elements":   `<broker>` + many(99_000, `<destinations/> %d `) + `</broker>`,
		"namespaces": `<broker><destinations>` + many(60_000, `<queue xmlns:a%d="x" physicalName="q"/>`) +
			`</destinations></broker>`,
		"unknown options": `<broker><transportConnectors><transportConnector uri="tcp://a:1?` +
			many(200_000, `x%d=1&amp;`) + `"/></transportConnectors></broker>`,
		"addresses": `<broker><networkConnectors><networkConnector uri="static:(` +
			many(60_000, `tcp://a:%d,`) + `)"/></networkConnectors></broker>`,
		"groups": `<broker>` + fmt.Sprintf(users,
			many(20_000, `<authenticationUser username="u%d" password="x" groups="group%[1]d"/>`),
			many(20_000, `<authorizationEntry queue="q%d" read="other%[1]d" write="x%[1]d"/>`)) +
			`</broker>`,
		"brokers": `<beans>` + many(90_000, `<broker brokerName="b%d"/>`) + `</beans>`,
		"references": `<beans>` + many(40_000, `<bean id="b%d"/>`) + `<bean ` + configurer +
			`><property name="properties"><list>` + many(50_000, `<ref bean="c%d"/>`) +
			`</list></property></bean><broker/></beans>`,
	} {
		begun := time.Now()
		_, _ = Parse("f.xml", []byte(text), Options{})
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("%s take %v", name, took)
		}
	}
}

// many repeats a text, each with its number.
func many(n int, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, text, i)
	}
	return b.String()
}
