package hubtest_test

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleter does something before it deletes the object of a name.
type deleter struct {
	client.Client
	name   string
	before func()
}

func (d *deleter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if obj.GetName() == d.name {
		d.before()
	}
	return d.Client.Delete(ctx, obj, opts...)
}

// counter counts the reads and writes that go through it.
type counter struct {
	client.Client
	reads, writes atomic.Int32
}

func (c *counter) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads.Add(1)
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *counter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.writes.Add(1)
	return c.Client.Create(ctx, obj, opts...)
}

func (c *counter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	c.writes.Add(1)
	return c.Client.Update(ctx, obj, opts...)
}

func (c *counter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.writes.Add(1)
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c *counter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	c.writes.Add(1)
	return c.Client.Delete(ctx, obj, opts...)
}

func (c *counter) Status() client.SubResourceWriter {
	// Asked for by those who write it alone.
	c.writes.Add(1)
	return c.Client.Status()
}
