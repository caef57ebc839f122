// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String is the text of a range: "20s-1m0s".
func (r Range) String() string {
	if r.Max <= r.Min {
		return r.Min.String()
	}
	return r.Min.String() + "-" + r.Max.String()
}

// ParseRange reads "20s-1m" or "20s".
func ParseRange(text string) (Range, error) {
	least, most, span := strings.Cut(text, "-")
	if !span {
		most = least
	}
	var r Range
	var err error
	if r.Min, err = time.ParseDuration(least); err == nil {
		r.Max, err = time.ParseDuration(most)
	}
	switch {
	case err != nil:
		return Range{}, fmt.Errorf("%w: %q is neither a duration nor a range such as 20s-1m", ErrOption, text)
	case r.Min > r.Max || r.Min < 0:
		return Range{}, fmt.Errorf("%w: the range %q ends before it begins", ErrOption, text)
	}
	return r, nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Range) UnmarshalText(text []byte) error {
	parsed, err := ParseRange(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// String is the text of a rate: "20" or "20/40", calls per second and burst.
func (r Rate) String() string {
	text := strconv.FormatFloat(r.PerSecond, 'g', -1, 64)
	if r.Burst != 0 {
		text += "/" + strconv.Itoa(r.Burst)
	}
	return text
}

// ParseRate reads "20" or "20/40": calls per second, and how many of them at once.
func ParseRate(text string) (Rate, error) {
	perSecond, burst, both := strings.Cut(text, "/")
	var r Rate
	var err error
	if r.PerSecond, err = strconv.ParseFloat(perSecond, 64); err == nil && both {
		r.Burst, err = strconv.Atoi(burst)
	}
	if err != nil || r.PerSecond < 0 || r.Burst < 0 {
		return Rate{}, fmt.Errorf("%w: %q is not a rate such as 20 or 20/40", ErrOption, text)
	}
	return r, nil
}

// Duration is a time.Duration that is written "5s" in JSON and YAML. A number is one of nanoseconds.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '"' {
		return json.Unmarshal(text, (*time.Duration)(d))
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%w: %q is not a duration such as 5s", ErrOption, s)
	}
	*d = Duration(parsed)
	return nil
}

// plainOptions are Options without their JSON methods.
type plainOptions Options

// optionsFile is Options with durations that a person can write.
type optionsFile struct {
	*plainOptions

	RetryAfter Duration `json:"retryAfter"`
}

// MarshalJSON implements json.Marshaler.
func (o Options) MarshalJSON() ([]byte, error) {
	plain := plainOptions(o)
	return json.Marshal(optionsFile{&plain, Duration(o.RetryAfter)})
}

// UnmarshalJSON implements json.Unmarshaler. Keys that it has not found leave the option as it is; unknown ones are an
// error.
func (o *Options) UnmarshalJSON(text []byte) error {
	file := optionsFile{(*plainOptions)(o), Duration(o.RetryAfter)}
	if err := decodeStrictly(text, &file); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	o.RetryAfter = time.Duration(file.RetryAfter)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (m Moment) MarshalText() ([]byte, error) {
	switch m {
	case BeforeApply:
		return []byte("before"), nil
	case AfterApply:
		return []byte("after"), nil
	case NoDrop:
	}
	return nil, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Moment) UnmarshalText(text []byte) error {
	switch string(text) {
	case "before":
		*m = BeforeApply
	case "after":
		*m = AfterApply
	case "":
		*m = NoDrop
	default:
		return fmt.Errorf("%w: a connection drops before or after the call is applied, not %q", ErrOption, text)
	}
	return nil
}

// plainFault is a Fault without its JSON methods.
type plainFault Fault

// faultFile is a Fault with durations that a person can write.
type faultFile struct {
	*plainFault

	RetryAfter Duration `json:"retryAfter,omitempty"`
	Delay      Duration `json:"delay,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (f Fault) MarshalJSON() ([]byte, error) {
	plain := plainFault(f)
	return json.Marshal(faultFile{&plain, Duration(f.RetryAfter), Duration(f.Delay)})
}

// UnmarshalJSON implements json.Unmarshaler. An unknown key is an error.
func (f *Fault) UnmarshalJSON(text []byte) error {
	file := faultFile{plainFault: (*plainFault)(f)}
	if err := decodeStrictly(text, &file); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	f.RetryAfter, f.Delay = time.Duration(file.RetryAfter), time.Duration(file.Delay)
	return nil
}
