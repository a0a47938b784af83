package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	noticeEvery = 5 * time.Second
	// sessionLife is how long a token of the metadata service is good.
	sessionLife = 6 * time.Hour
)

// notice asks the metadata service whether the cloud takes this machine back, until it says so or ctx ends.
func (g *Guard) notice(ctx context.Context) {
	client := &http.Client{Timeout: noticeEvery, Transport: &http.Transport{DisableKeepAlives: true}}
	session, until, said := "", time.Time{}, ""
	for clock.Sleep(ctx, g.deps.Clock, noticeEvery) {
		var err error
		if now := g.deps.Clock.Now(); session == "" || now.After(until) {
			if session, err = g.ask(ctx, client, http.MethodPut, "/latest/api/token", ""); err == nil {
				until = now.Add(sessionLife / 2)
			}
		}
		text := ""
		if err == nil {
			text, err = g.ask(ctx, client, http.MethodGet, "/latest/meta-data/spot/instance-action", session)
		}
		if err != nil {
			session = ""
			if err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				g.deps.Log.Warn("asking the cloud for notices", "error", err)
			}
			continue
		}
		var action struct {
			Action string
			Time   time.Time
		}
		if text == "" || json.Unmarshal([]byte(text), &action) != nil || action.Time.IsZero() {
			continue
		}
		g.deps.Log.Warn("the cloud takes this machine back", "action", action.Action, "at", action.Time)
		g.mu.Lock()
		g.news.interrupted = action.Time.UTC().Format(time.RFC3339)
		g.mu.Unlock()
		return
	}
}

// ask makes a request; what is not there is "".
func (g *Guard) ask(ctx context.Context, client *http.Client, method, path, session string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, g.cfg.Notices+path, nil)
	if err != nil {
		return "", err
	}
	if session == "" {
		r.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", fmt.Sprint(int(sessionLife.Seconds())))
	} else {
		r.Header.Set("X-aws-ec2-metadata-token", session)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return "", nil
	case err == nil && answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return string(text), err
}
