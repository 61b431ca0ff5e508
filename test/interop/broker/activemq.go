package broker

import (
	"os/exec"
	"path/filepath"
	"strings"

	"hopwire/test/need"
)

// logging sends the log of a real broker to its folder.
const logging = `log4j.rootLogger=INFO, f
log4j.logger.org.springframework=WARN
log4j.appender.f=org.apache.log4j.FileAppender
log4j.appender.f.File={dir}/broker.log
log4j.appender.f.layout=org.apache.log4j.PatternLayout
log4j.appender.f.layout.ConversionPattern=%d %-5p %c{1} - %m%n
`

// activemq is the command of a real ActiveMQ, without the shell script around it.
func (b *Broker) activemq() *exec.Cmd {
	b.t.Helper()
	home := need.ActiveMQ(b.t)
	log := b.write("log4j.properties", strings.ReplaceAll(logging, "{dir}", b.dir))
	classpath := strings.Join([]string{
		filepath.Join(home, "lib", "*"), filepath.Join(home, "lib", "optional", "*"),
		filepath.Join(home, "bin", "activemq.jar"),
	}, ":")
	jvm := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} // quick to start
	if b.real {
		jvm = []string{"-Xms64m", "-Xmx1g"}
	}
	return exec.Command("java", append(jvm,
		"-Dlog4j.configuration=file:"+log, "-Djava.util.logging.config.file=/dev/null",
		"-Dactivemq.home="+home, "-Dactivemq.base="+b.dir, "-Djava.io.tmpdir="+b.dir,
		"-cp", classpath, "org.apache.activemq.console.Main", "start",
		"xbean:file:"+filepath.Join(b.dir, "activemq.xml"))...)
}
