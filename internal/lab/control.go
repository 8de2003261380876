package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// socketFile is where the supervisor takes orders.
const socketFile = "control.sock"

// controlServer takes the orders of other processes of the same user.
type controlServer struct {
	server *http.Server
	cancel context.CancelFunc
}

var errStarting = errors.New("the lab is still starting; try again when `flotilla lab up` is done")

// serveControl answers POST /start?name=PART, /stop?name=PART and /down at
// the lab's socket.
func serveControl(l *Lab) (*controlServer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var listener net.Listener
	err := inDir(l.options.Dir, func(short string) (err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(short, socketFile))
		return err
	})
	if err != nil {
		cancel()
		return nil, err
	}
	// The path by which the socket was made is valid no longer; the file
	// goes with the directory.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", answer(func(r *http.Request) error {
		if !l.isReady() {
			return errStarting
		}
		return l.StartUnit(r.Context(), r.URL.Query().Get("name"))
	}))
	mux.HandleFunc("POST /stop", answer(func(r *http.Request) error {
		if !l.isReady() {
			return errStarting
		}
		return l.StopUnit(r.URL.Query().Get("name"))
	}))
	mux.HandleFunc("POST /down", answer(func(r *http.Request) error {
		l.askDown(r.URL.Query().Has("keepLogs"))
		return nil
	}))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() { _ = server.Serve(listener) }()
	return &controlServer{server: server, cancel: cancel}, nil
}

func (c *controlServer) close() {
	c.cancel()
	_ = c.server.Close()
}

func (l *Lab) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// answer sends what f returns: its error, as text.
func answer(f func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// askDown asks for the end of the lab. A supervisor of its own waits for
// that; an attached lab is taken down here, its program goes on.
func (l *Lab) askDown(keepLogs bool) {
	l.mu.Lock()
	l.keepLogs = l.keepLogs || keepLogs
	l.mu.Unlock()
	l.downOnce.Do(func() { close(l.downAsked) })
	if l.attached {
		go func() { _ = l.Stop() }()
	}
}

// Client gives orders to a lab that another process supervises.
type Client struct {
	dir  string
	http *http.Client
}

// Open returns a client for the lab in a directory.
func Open(dir string) (*Client, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	status, err := ReadStatus(dir)
	if err != nil {
		return nil, err
	}
	if !status.Supervisor.Alive() {
		return nil, fmt.Errorf("the lab in %s was killed: clear it with `flotilla lab down --state %s`", dir, dir)
	}
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = inDir(dir, func(short string) error {
			conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(short, socketFile))
			return err
		})
		return conn, err
	}
	return &Client{dir: dir, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
}

// StartUnit starts a part of the lab and returns when it is ready.
func (c *Client) StartUnit(ctx context.Context, name string) error {
	return c.post(ctx, "/start", url.Values{"name": {name}})
}

// StopUnit stops a part of the lab; its data is kept.
func (c *Client) StopUnit(ctx context.Context, name string) error {
	return c.post(ctx, "/stop", url.Values{"name": {name}})
}

func (c *Client) down(ctx context.Context, keepLogs bool) error {
	query := url.Values{}
	if keepLogs {
		query.Set("keepLogs", "")
	}
	return c.post(ctx, "/down", query)
}

func (c *Client) post(ctx context.Context, path string, query url.Values) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("the supervisor of the lab in %s does not answer: %w", c.dir, err)
	}
	defer func() { _ = response.Body.Close() }()
	message, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(message)))
	}
	return err
}

// encode writes one message as a line of JSON.
func encode(w io.Writer, message any) { _ = json.NewEncoder(w).Encode(message) }
