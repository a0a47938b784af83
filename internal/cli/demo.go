package cli

import "context"

func (a *App) demo(ctx context.Context, addr string) {}
