package mail

// SetStep runs f before each durable step of this package, until the returned function is called.
func SetStep(f func(name string) error) (restore func()) {
	testOnlyStep.Store(&f)
	return func() { testOnlyStep.Store(nil) }
}

// File is an envelope as it lies on disk.
func (e Envelope) File() ([]byte, error) { return e.file() }
