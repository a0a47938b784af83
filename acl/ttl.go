package acl

import (
	"encoding/json"
	"fmt"
	"time"
)

// TTL is a lifetime. In JSON it is a string such as "8h0m0s"; a number is read as nanoseconds, as Nomad's clients write it.
type TTL time.Duration

// String returns the lifetime as time.Duration prints it.
func (d TTL) String() string { return time.Duration(d).String() }

// MarshalJSON implements json.Marshaler.
func (d TTL) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler. The empty string and null are 0. Errors: those of time.ParseDuration.
func (d *TTL) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		*d = 0
	case string:
		if v == "" {
			*d = 0
			return nil
		}
		parsed, err := time.ParseDuration(v)
		if err != nil {
			return fmt.Errorf("a lifetime such as \"8h\" is wanted: %w", err)
		}
		*d = TTL(parsed)
	case float64:
		*d = TTL(v)
	default:
		return fmt.Errorf("a lifetime such as \"8h\" is wanted, got %s", data)
	}
	return nil
}
