package leader

import (
	"context"
)

func (l *Leader) watchDeployments(ctx context.Context, log Log) { <-ctx.Done() }
func (l *Leader) watchDrains(ctx context.Context, log Log)      { <-ctx.Done() }
