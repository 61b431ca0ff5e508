package config

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	// configurer is what BEAN stands for in the table: the class of a placeholder bean.
	configurer = `class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer"`
	springFile = `<beans xmlns="http://www.springframework.org/schema/beans"
	xmlns:p="http://www.springframework.org/schema/p"
	xmlns:util="http://www.springframework.org/schema/util"
	xmlns:context="http://www.springframework.org/schema/context">
BEANS
<broker xmlns="http://activemq.apache.org/schema/core" brokerId="${port:61616}"/></beans>`
)

const (
	pair     = `<props><prop key="port"> 61777 </prop></props>`
	property = `<bean BEAN><property name="`
)

// placeholderBeans are beans with the port that a placeholder has by them, and what is told.
var placeholderBeans = []struct{ beans, port, told string }{
	{`<bean BEAN/>`, "61616", ""},
	{`<bean BEAN p:location="A"/>`, "61777", ""},
	{`<bean BEAN p:locations="A"/>`, "61777", ""},
	{`<bean BEAN p:properties="port=61777"/>`, "61777", ""},
	{property + `location" value="A"/></bean>`, "61777", ""},
	{property + `location"><value>A</value></property></bean>`, "61777", ""},
	{property + `locations"><list><value>A</value><value>B</value></list></property></bean>`,
		"61888", ""},
	{property + `locations"><array><value>A</value></array></property></bean>`, "61777", ""},
	{property + `locations"><set><value>A</value></set></property></bean>`, "61777", ""},
	{property + `properties" value="port=61777"/></bean>`, "61777", ""},
	{property + `properties"><value>port=61777</value></property></bean>`, "61777", ""},
	{property + `properties">` + pair + `</property></bean>`, "61777", ""},
	{property + `properties"><map><entry key="port" value="61777"/></map></property></bean>`,
		"61777", ""},
	{property + `properties"><map><entry key="port"><value>61777</value></entry></map></property>` +
		`</bean>`, "61777", ""},
	{property + `propertiesArray"><list>` + pair + `</list></property></bean>`, "61777", ""},
	{property + `properties" value="port=1"/><property name="location" value="A"/></bean>`,
		"61777", ""},
	{property + `properties" value="port=1"/><property name="location" value="A"/>` +
		`<property name="localOverride" value="true"/></bean>`, "1", ""},
	{`<util:properties id="x" location="A"/><bean BEAN p:properties-ref="x"/>`, "61777", ""},
	{`<util:properties id="x"><prop key="port">61777</prop></util:properties>` + property +
		`properties"><ref bean="x"/></property></bean>`, "61777", ""},
	{`<bean id="x" class="org.springframework.beans.factory.config.PropertiesFactoryBean">` +
		`<property name="location" value="A"/></bean>` + property + `properties" ref="x"/></bean>`,
		"61777", ""},
	{`<bean name="y x" class="java.util.Properties"><constructor-arg>` + pair +
		`</constructor-arg></bean><bean BEAN p:properties-ref="x"/>`, "61777", ""},
	{`<context:property-placeholder location="A"/>`, "61777", ""},
	{`<context:property-placeholder location="A, B"/>`, "61888", ""},
	{`<util:properties id="x" location="A"/><context:property-placeholder properties-ref="x"/>`,
		"61777", ""},
	{`<bean BEAN p:location="A"/><bean BEAN p:location="B"/>`, "61777", ""},
	{`<bean BEAN p:location="A" p:fileEncoding="UTF-8"/>`, "61777", ""},

	{`<bean BEAN p:location="A" p:order="2"/><bean BEAN p:location="B" p:order="1"/>`, "61777",
		"order of the bean that resolves placeholders is ignored"},
	{`<bean BEAN p:location="A" p:placeholderPrefix="@{"/>`, "61777",
		"placeholderPrefix of the bean that resolves placeholders is ignored"},
	{`<context:property-placeholder location="A" value-separator="?"/>`, "61777",
		"valueSeparator of the bean that resolves placeholders is ignored"},
	{property + `location"><bean class="org.springframework.core.io.FileSystemResource"/>` +
		`</property></bean>`, "61616", "is not read from <bean>"},
	{`<bean BEAN p:location-ref="x"/>`, "61616", "is not read from a reference"},
	{`<bean BEAN p:properties-ref="x"/>`, "61616", "is not read from bean x"},
	{`<bean id="x" class="com.example.P"/><bean BEAN p:properties-ref="x"/>`, "61616",
		"is not read from <bean>"},
	{property + `properties"><map><entry key="port" value-ref="x"/></map></property></bean>`,
		"61616", "is not read from <entry>"},
	{`<util:properties id="x"><property name="properties" ref="x"/></util:properties>` +
		`<bean BEAN p:properties-ref="x"/>`, "61616", "is not read from bean x"},
}

// What a placeholder has is what ActiveMQ 5.17.2 has of the same beans, A being a file with 61777
// and B one with 61888, or a notice says what was not read.
func TestPlaceholdersHaveWhatBeansSay(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.properties"), filepath.Join(dir, "b.properties")
	write(t, a, []byte("port=61777\n"))
	write(t, b, []byte("port=61888\n"))
	for _, c := range placeholderBeans {

		text := strings.NewReplacer("BEAN", configurer, `"A`, `"file:`+a, `B"`, "file:"+b+`"`,
			">A<", ">file:"+a+"<", ">B<", ">file:"+b+"<").Replace(c.beans)
		got, err := Parse("f.xml", []byte(strings.Replace(springFile, "BEANS", text, 1)), Options{
			LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Errorf("%s\n%v", c.beans, err)
			continue
		}
		var told []string
		for _, n := range got.Notices {
			if n.Pos.Line != 5 {
				t.Errorf("%s\nis told of line %d", c.beans, n.Pos.Line)
			}
			if !strings.Contains(n.Text, "Java class com.example.P is ignored") {
				told = append(told, n.Text)
			}
		}
		all := strings.Join(told, "\n")
		if got.Broker().ID != c.port || c.told == "" && all != "" || !strings.Contains(all, c.told) {
			t.Errorf("%s\nhas %s, want %s; told is %q", c.beans, got.Broker().ID, c.port, all)
		}
	}
}
