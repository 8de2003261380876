package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

const (
	// appUser is the login under which GitHub takes the token of an App.
	appUser = "x-access-token"
	// tokenMargin is how long before its end a token is not used any more.
	tokenMargin = 5 * time.Minute
	// proofLife is how long we can show who the App is; GitHub allows ten minutes.
	proofLife = 9 * time.Minute
	// clockSkew is how far our clock may be ahead of GitHub's.
	clockSkew = time.Minute
	// answerLimit bounds what is read of an answer.
	answerLimit = 64 << 10
)

// App is an installation of a GitHub App. Its tokens live for an hour and are
// kept here, so an App is shared by those who use it.
type App struct {
	id, installation string
	key              *rsa.PrivateKey
	text             []byte

	mu     sync.Mutex
	tokens map[string]token
}

// token is what a server gave, and until when it is good.
type token struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires_at"`
}

func isApp(data map[string][]byte) bool {
	return len(data[keyAppID])+len(data[keyAppInstallation])+len(data[keyAppPrivateKey]) > 0
}

func appCredentials(secretType string, data map[string][]byte) (Credentials, error) {
	if err := needKeys(secretType, data, keyAppID, keyAppInstallation, keyAppPrivateKey); err != nil {
		return Credentials{}, err
	}
	app := &App{
		id: strings.TrimSpace(string(data[keyAppID])), installation: strings.TrimSpace(string(data[keyAppInstallation])),
		text: data[keyAppPrivateKey], tokens: map[string]token{},
	}
	if _, err := strconv.ParseUint(app.installation, 10, 63); err != nil {
		return Credentials{}, secretError("has a key %s that is no number", keyAppInstallation)
	}
	if app.key = rsaKey(app.text); app.key == nil {
		return Credentials{}, secretError("has a key %s that is not the PEM private key which GitHub made for the App", keyAppPrivateKey)
	}
	return Credentials{App: app}, nil
}

func rsaKey(text []byte) *rsa.PrivateKey {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	key, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, _ := key.(*rsa.PrivateKey)
	return own
}

// Identity is a digest of what makes the App.
func (a *App) Identity() string { return digest.Of(a.identity()...) }

// identity is nothing for no App, so that digests of other credentials stay.
func (a *App) identity() [][]byte {
	if a == nil {
		return nil
	}
	return [][]byte{[]byte(a.id), []byte(a.installation), a.text}
}

// forget makes the next session ask for a new token: this one was refused.
func (a *App) forget() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.tokens)
}

// token returns a token for the server of a repository.
func (a *App) token(ctx context.Context, client *http.Client, ep *transport.Endpoint) (string, error) {
	if ep.Protocol != "https" {
		return "", fault.Stall(ReasonInvalidSecret, errors.New("a GitHub App needs a repository URL with https://"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	api := apiOf(ep)
	if t := a.tokens[api]; time.Until(t.Expires) > tokenMargin {
		return t.Token, nil
	}
	t, err := a.ask(ctx, client, api)
	if err == nil {
		a.tokens[api] = t
	}
	return t.Token, err
}

// apiOf is where a GitHub server answers for Apps.
func apiOf(ep *transport.Endpoint) string {
	host := strings.ToLower(ep.Host)
	if ep.Port > 0 && ep.Port != defaultPort(ep.Protocol) {
		return "https://" + hostPort(ep) + "/api/v3"
	}
	if host == "github.com" || strings.HasSuffix(host, ".ghe.com") {
		return "https://api." + host
	}
	return "https://" + host + "/api/v3"
}

func (a *App) ask(ctx context.Context, client *http.Client, api string) (token, error) {
	proof, err := a.proof(time.Now())
	if err != nil {
		return token{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/app/installations/"+a.installation+"/access_tokens", nil)
	if err != nil {
		return token{}, err
	}
	req.Header.Set("Authorization", "Bearer "+proof)
	req.Header.Set("Accept", "application/vnd.github+json")
	// A redirect would take the proof elsewhere.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return token{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	if err != nil {
		return token{}, err
	}
	if res.StatusCode != http.StatusCreated {
		return token{}, a.refused(api, res.StatusCode)
	}
	var t token
	if err := json.Unmarshal(body, &t); err != nil || t.Token == "" {
		return token{}, transient(fmt.Errorf("%s answered without a token for the GitHub App %s; it will be asked again", api, a.id))
	}
	return t, nil
}

func (a *App) refused(api string, code int) error {
	switch code {
	case http.StatusUnauthorized:
		return wait(retryRefused, ReasonUnauthorized, "%s does not accept the private key of the GitHub App %s; check %s and %s in the credential Secret",
			api, a.id, keyAppID, keyAppPrivateKey)
	case http.StatusNotFound:
		return wait(retryRefused, ReasonUnauthorized, "%s knows no installation %s of the GitHub App %s; check %s in the credential Secret, "+
			"which stands at the end of the address of the installation's settings", api, a.installation, a.id, keyAppInstallation)
	case http.StatusForbidden:
		return wait(retryRefused, ReasonUnauthorized, "%s gives no token for the installation %s of the GitHub App %s, which may be suspended", api, a.installation, a.id)
	}
	return transient(fmt.Errorf("%s answered %d %s when asked for a token of the GitHub App %s; it will be asked again",
		api, code, http.StatusText(code), a.id))
}

// proof is a JSON Web Token that shows who the App is.
func (a *App) proof(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-clockSkew).Unix(), "exp": now.Add(proofLife - clockSkew).Unix(), "iss": a.id})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	var text bytes.Buffer
	text.WriteString(encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims))
	sum := sha256.Sum256(text.Bytes())
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign for the GitHub App %s: %w", a.id, err)
	}
	text.WriteString("." + encode(signature))
	return text.String(), nil
}
