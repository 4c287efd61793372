package policy

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// How values are written in a file. Each form is read by one function and written
// by another, and what is written reads back as the same value.

const (
	offWord = "off"
	off     = -1 // the value that "off" stands for
)

const (
	wantDuration = "a duration such as 200ms, 5s or 10m"
	wantRate     = "a rate such as 10/s, 600/m or 100/h"
	wantSize     = "a size such as 512KiB or 64MiB"
	wantCount    = "a whole number"
	wantNumber   = "a number such as 10 or 2.5"
	wantBool     = "true or false"
)

func readDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && !strings.ContainsAny(s[:1], "+.")
}

// writeDuration is [time.Duration.String] without the zeros at its end.
func writeDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var rateUnits = []struct {
	name    string
	seconds float64
}{{"s", 1}, {"m", 60}, {"h", 3600}}

// readRate gives calls a second.
func readRate(s string) (float64, bool) {
	number, unit, ok := strings.Cut(s, "/")
	if !ok {
		return 0, false
	}
	for _, u := range rateUnits {
		if u.name == unit {
			n, ok := readNumber(number)
			return n / u.seconds, ok
		}
	}
	return 0, false
}

// writeRate takes the first unit in which the rate is a whole number.
func writeRate(r float64) string {
	for _, u := range rateUnits {
		n := math.Round(r * u.seconds)
		if n >= 1 && n < 1<<53 && n/u.seconds == r {
			return strconv.FormatFloat(n, 'f', -1, 64) + "/" + u.name
		}
	}
	return writeNumber(r) + "/s"
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

// readSize gives bytes.
func readSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		if number, found := strings.CutSuffix(s, u.name); found {
			n, ok := readCount(number)
			if n > math.MaxInt64/u.bytes || n < math.MinInt64/u.bytes {
				return 0, false
			}
			return n * u.bytes, ok
		}
	}
	return 0, false
}

// writeSize takes the largest binary unit in which the size is a whole number.
func writeSize(n int64) string {
	for _, u := range sizeUnits[:3] {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// readCount takes decimal numbers only: 0x10, 1_000 and 010 mean different things
// to different readers of YAML.
func readCount(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// readBool takes off for false, as it stands for everything else that is turned off.
func readBool(s string) (v, ok bool) {
	return s == "true", s == "true" || s == "false" || s == offWord
}

func readNumber(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && finite(n) && !strings.ContainsAny(s, "_xXeEpP+")
}

func writeNumber(n float64) string {
	return strconv.FormatFloat(n, 'f', -1, 64)
}
