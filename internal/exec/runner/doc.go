// Package runner keeps the warm runners of all environments in memory and hands them out.
//
// A runner is an allocation of an environment's job. The engine keeps enough of them warm; this package follows the
// event stream to know them, pops one for a claim, writes one line to a local journal, answers, and has the claim
// recorded through control right after, many at once. Whatever was handed out and not yet recorded is known from
// the journal after a restart, so that no runner is ever handed out twice.
//
//	(allocation running, unclaimed) → warm → claimed ⇄ busy → gone⟂
package runner
