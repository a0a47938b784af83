package runner

import (
	"context"
	"slices"
)

// Settle records what earlier services of this server handed out and released without recording it, as the journal says. Each
// line is recorded with the lease that it stands under, and then the journal is emptied. It is for a server that is one of
// several, before it begins an incarnation: what it does not record by then is stopped. What is refused was dealt with already.
// Errors: those of the disk and of the intake, after which the journal is as before.
func Settle(ctx context.Context, path string, intake func(lease uint64) Intake) error {
	j, err := openJournal(path, 0)
	if err != nil {
		return err
	}
	defer j.close() //nolint:errcheck // what it has is written
	lines, err := j.read()
	if err != nil {
		return err
	}
	if err := SettleLines(ctx, lines, intake); err != nil {
		return err
	}
	return j.empty()
}

// SettleLines is Settle for lines that were read already. Errors: those of the intake; some of the lines may be settled then.
func SettleLines(ctx context.Context, lines []Line, intake func(lease uint64) Intake) error {
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && n < maxBatch && lines[n].Lease == lines[0].Lease {
			n++
		}
		if err := settle(ctx, intake(lines[0].Lease), lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// settle records lines of one lease. A later line of a claim replaces the earlier.
func settle(ctx context.Context, intake Intake, lines []Line) error {
	var claims []AllocClaim
	var releases []release
	for _, line := range lines {
		if line.Claim == nil {
			releases = append(releases, release{line.Release, ErrStopped.Error(), line.Asked})
			continue
		}
		claims = slices.DeleteFunc(claims, func(c AllocClaim) bool { return c.AllocID == line.Claim.AllocID })
		claims = append(claims, *line.Claim)
	}
	for len(claims) > 0 {
		n := fitting(claims)
		if _, err := intake.ClaimRunners(ctx, claims[:n], nil); err != nil {
			return err
		}
		claims = claims[n:]
	}
	for _, of := range byReason(releases) {
		if err := intake.ReleaseRunners(ctx, of); err != nil {
			return err
		}
	}
	return nil
}
