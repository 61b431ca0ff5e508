package broker

import (
	"os/exec"
	"path/filepath"
	"strings"

	"hopwire/test/need"
)

// logging sends the log of a real broker to its folder; 5.17 has log4j 1, 6.3 has log4j 2.
const (
	logging = `log4j.rootLogger=INFO, f
log4j.logger.org.springframework=WARN
log4j.appender.f=org.apache.log4j.FileAppender
log4j.appender.f.File={dir}/broker.log
log4j.appender.f.layout=org.apache.log4j.PatternLayout
log4j.appender.f.layout.ConversionPattern=%d %-5p %c{1} - %m%n
`
	logging6 = `rootLogger.level=INFO
rootLogger.appenderRef.f.ref=f
logger.s.name=org.springframework
logger.s.level=WARN
appender.f.type=File
appender.f.name=f
appender.f.fileName={dir}/broker.log
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d %-5p %c{1} - %m%n
`
)

// activemq is the command of a real ActiveMQ, without the shell script around it.
func (b *Broker) activemq() *exec.Cmd {
	b.t.Helper()
	home := need.ActiveMQ(b.t)
	log := b.write("log4j.properties", strings.ReplaceAll(logging, "{dir}", b.dir))
	return b.java("-Dlog4j.configuration=file:"+log, "-Dactivemq.home="+home, "-cp", strings.Join(
		[]string{filepath.Join(home, "lib", "*"), filepath.Join(home, "lib", "optional", "*"),
			filepath.Join(home, "bin", "activemq.jar")}, ":"))
}

// activemq6 is that of ActiveMQ 6, which is nothing but its jars.
func (b *Broker) activemq6() *exec.Cmd {
	b.t.Helper()
	jars := need.ActiveMQ6(b.t)
	log := b.write("log4j2.properties", strings.ReplaceAll(logging6, "{dir}", b.dir))
	return b.java("-Dlog4j2.configurationFile=file:"+log, "-Dactivemq.home="+b.dir,
		"-cp", filepath.Join(jars, "*"))
}

// java is ActiveMQ's own main class with what both lines are given.
func (b *Broker) java(more ...string) *exec.Cmd {
	jvm := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} // quick to start
	if b.o.Bench {
		jvm = []string{"-Xms64m", "-Xmx1g"}
	}
	jvm = append(jvm, "-Djava.util.logging.config.file=/dev/null",
		"-Dactivemq.base="+b.dir, "-Djava.io.tmpdir="+b.dir)
	return exec.Command("java", append(append(jvm, more...), "org.apache.activemq.console.Main",
		"start", "xbean:file:"+filepath.Join(b.dir, "activemq.xml"))...)
}
