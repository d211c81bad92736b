/// How far a connection is on its way to its end, apart from the request in progress.
enum ConnectionEnding: Equatable {
  /// Further requests may arrive.
  case open
  /// The server stops: the connection closes when the requests that have arrived have their responses.
  case last
  /// The client sends nothing more, and gets the responses to what it has sent.
  case inputClosed
  /// The bytes after the request in progress are not HTTP, and will be refused: those of the body of a request that the
  /// task has got, or of the head of another one.
  case malformed(Refusal.Reason, inBody: Bool)
  /// The client gets no more bytes.
  case silent
  /// Nothing more arrives, and the connection closes after the request in progress: it has failed, is lost, or its task
  /// is canceled.
  case cut

  /// Whether a request may be given to the task before all of it has arrived.
  var mayBeginBody: Bool { self == .open || self == .last }

  /// Whether requests that arrive are handled. Those that wait at the beginning of an end are dropped then.
  var takesRequests: Bool { self != .silent && self != .cut }

  /// Whether an error of the connection ends it. After bytes that are not HTTP, handlers report more of them.
  var canFail: Bool {
    switch self {
    case .open, .last, .inputClosed, .cut: true
    case .malformed, .silent: false
    }
  }

  /// Whether the decoder's first error is still to come.
  var canBeMalformed: Bool {
    switch self {
    case .open, .last, .inputClosed: true
    case .malformed, .silent, .cut: false
    }
  }

  mutating func inputCloses() {
    switch self {
    case .open, .last: self = .inputClosed
    case .inputClosed, .malformed, .silent, .cut: break
    }
  }

  mutating func outputCloses() {
    switch self {
    case .open, .inputClosed, .malformed: self = .silent
    // A server that stops does not wait for the client to confirm the end.
    case .last: self = .cut
    case .silent, .cut: break
    }
  }

  mutating func quiesces() {
    switch self {
    case .open: self = .last
    // The client need not confirm the end.
    case .silent: self = .cut
    // These end soon without it.
    case .last, .inputClosed, .malformed, .cut: break
    }
  }
}
