package broker

import (
	"fmt"

	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// taken is a limit, and how much of it is taken.
func taken(limit, used int64) string {
	return "(" + plural.Bytes(limit) + ", of which " + plural.Bytes(used) + " are taken)"
}

// memoryReleases names the limit that keeps sends waiting.
func (b *Broker) memoryReleases(d *destination) string {
	if l := d.usage.Limit(); l > 0 && d.usage.Used() >= l {
		return "consumers here, or a larger memoryLimit of its policyEntry " + taken(l, d.usage.Used())
	}
	return "consumers here or of other destinations, or a larger memoryUsage of the broker " +
		taken(b.memory.Limit(), b.memory.Used())
}

// tempReleases names what keeps the spool from making room in memory: of its limit and its disk
// that of which less is left.
func (b *Broker) tempReleases() string {
	space, limit := b.spool.storage.Space(), b.opt.TempLimitBytes
	onDisk := space.FreeBytes - space.ReserveBytes
	if limit > 0 && (space.FreeBytes < 0 || limit-space.UsedBytes <= onDisk) {
		return "consumers here or of other destinations, or a larger tempUsage of the broker " +
			taken(limit, space.UsedBytes)
	}
	return diskReleases(space, message.TempFull)
}

// storeReleases names the limit that keeps sends waiting, or the disk.
func (b *Broker) storeReleases(d *destination) string {
	space := b.journal.storage.Space()
	if !b.overStoreLimit(d) {
		return diskReleases(space, message.StoreFull)
	}
	mark := ""
	if p := d.policy.Memory.StoreHighWaterPercent; p < 100 {
		mark = fmt.Sprintf(", or a higher storeUsageHighWaterMark of its policyEntry (%d%%)", p)
	}
	return "consumers here or of other destinations, or a larger storeUsage of the broker " +
		taken(b.opt.StoreLimitBytes, space.UsedBytes+b.journal.undurable) + mark
}

// diskReleases tells of a disk that is short, as far as that is known.
func diskReleases(space store.Space, r message.Reason) string {
	if space.FreeBytes < 0 {
		return r.Releases()
	}
	return "consumers, or room on the disk (" + plural.Bytes(space.FreeBytes) + " are free, of" +
		" which " + plural.Bytes(space.ReserveBytes) + " are kept free)"
}
