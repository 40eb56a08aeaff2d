package desk

import (
	"bufio"
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net"
	"time"

	"pi-cradle/squire/trust"
)

const (
	maxFrame   = 64 << 10 // bytes of a line; a question holds two paths and a few names
	nonceSize  = 32
	tokenSize  = 32
	writeLimit = 5 * time.Second
)

// Kinds of messages, see the package's comment.
const (
	kindHello   = "hello"
	kindWait    = "wait"
	kindTurn    = "turn"
	kindAsk     = "ask"
	kindAnswer  = "answer"
	kindRefused = "refused"
)

type message struct {
	Kind      string          `json:"kind"`
	Question  *trust.Question `json:"question,omitempty"`
	Answer    trust.Answer    `json:"answer,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Cancelled bool            `json:"cancelled,omitempty"` // with kindRefused: by the user
}

// nonce is the one message that is not sealed.
type nonce struct {
	Nonce string `json:"nonce"`
}

var (
	errFrameTooLong = errors.New("a frame is too long")
	errForged       = errors.New("a frame is not from the other side, or not for this place")
)

// side is who sends.
type side string

const (
	rootSide      side = "root"
	requesterSide side = "requester"
)

// sealer makes and checks the seals of the frames that one side sends, in their order.
type sealer struct {
	mac  hash.Hash
	next uint64
}

func (s *sealer) seal(body []byte) []byte {
	s.mac.Reset()
	var order [8]byte
	binary.BigEndian.PutUint64(order[:], s.next)
	s.next++
	s.mac.Write(order[:])
	s.mac.Write(body)
	return s.mac.Sum(nil)
}

// frame is a sealed line: the seal in hexadecimal, a space, the body, a newline.
func (s *sealer) frame(m message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	line := hex.AppendEncode(nil, s.seal(body))
	line = append(append(append(line, ' '), body...), '\n')
	if len(line) > maxFrame {
		return nil, errFrameTooLong
	}
	return line, nil
}

// open reads a line that frame made. Nothing of it is looked at before the seal has been found right.
func (s *sealer) open(line []byte) (message, error) {
	var m message
	seal, body, _ := bytes.Cut(line, []byte(" "))
	given := make([]byte, hex.DecodedLen(len(seal)))
	if _, err := hex.Decode(given, seal); err != nil || !hmac.Equal(given, s.seal(body)) {
		return m, errForged
	}
	err := json.Unmarshal(body, &m)
	return m, err
}

// link is one connection between the two sides.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	out     sealer
	inbound sealer
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, in: bufio.NewReaderSize(conn, maxFrame)}
}

// readLine gives the next line without its newline; it is valid until the next call.
func (l *link) readLine() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errFrameTooLong
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}

func (l *link) write(line []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	_, err := l.conn.Write(line)
	return err
}

func (l *link) send(m message) error {
	line, err := l.out.frame(m)
	if err != nil {
		return err
	}
	return l.write(line)
}

func (l *link) receive(kinds ...string) (message, error) {
	line, err := l.readLine()
	if err != nil {
		return message{}, err
	}
	m, err := l.inbound.open(line)
	if err != nil {
		return message{}, err
	}
	for _, kind := range kinds {
		if m.Kind == kind {
			return m, nil
		}
	}
	return message{}, fmt.Errorf("unexpected message %.20q", m.Kind)
}

// sendNonce makes this side's nonce and tells it.
func (l *link) sendNonce() ([]byte, error) {
	own := make([]byte, nonceSize)
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	line, err := json.Marshal(nonce{hex.EncodeToString(own)})
	if err != nil {
		return nil, err
	}
	return own, l.write(append(line, '\n'))
}

func (l *link) readNonce() ([]byte, error) {
	line, err := l.readLine()
	if err != nil {
		return nil, err
	}
	return parseNonce(line)
}

func parseNonce(line []byte) ([]byte, error) {
	var n nonce
	if err := json.Unmarshal(line, &n); err != nil {
		return nil, err
	}
	theirs, err := hex.DecodeString(n.Nonce)
	if err == nil && len(theirs) != nonceSize {
		err = fmt.Errorf("a nonce of %d bytes", len(theirs))
	}
	return theirs, err
}

// arm makes the sealers of the connection. Each direction has a key of its own, so that nothing can be sent back to its sender.
func (l *link) arm(own side, root string, token, requesterNonce, rootNonce []byte) error {
	salt := append(append([]byte{}, requesterNonce...), rootNonce...)
	for _, from := range []side{rootSide, requesterSide} {
		key, err := hkdf.Key(sha256.New, token, salt, "squire trust 1 "+string(from)+" "+root, sha256.Size)
		if err != nil {
			return err
		}
		s := &l.inbound
		if from == own {
			s = &l.out
		}
		s.mac = hmac.New(sha256.New, key)
	}
	return nil
}
