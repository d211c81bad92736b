/// The turn in the exchange of requests and responses. It decides who gets which request, and the handler passes it on.
enum Turn<Waiter, Given> {
  /// The task has not begun.
  case beginning
  /// The task waits for a request.
  case client(Waiter)
  /// A request waits for the task to begin.
  case given(Given)
  /// The task makes a response.
  case task(hasBegunResponse: Bool)
  /// The task gets no more requests.
  case over

  /// The reply to a task that asks for a request.
  enum Reply {
    case now(Given)
    case later
    case never
  }

  /// From the moment that a request is given until its response is complete.
  var isInProgress: Bool {
    switch self {
    case .given, .task: true
    case .beginning, .client, .over: false
    }
  }

  var hasBegunResponse: Bool {
    if case .task(hasBegunResponse: true) = self { true } else { false }
  }

  var isOver: Bool {
    if case .over = self { true } else { false }
  }

  /// - Returns: the task that gets the request immediately; nil if it has not begun, or gets no more requests.
  mutating func requestArrives(_ request: Given) -> Waiter? {
    switch self {
    case .client(let waiter):
      self = .task(hasBegunResponse: false)
      return waiter
    case .beginning:
      self = .given(request)
      return nil
    case .given, .task, .over:
      return nil
    }
  }

  /// The task asks for its first request, or for the next after a complete response.
  mutating func taskAsks(_ waiter: Waiter) -> Reply {
    switch self {
    case .given(let request):
      self = .task(hasBegunResponse: false)
      return .now(request)
    case .over:
      return .never
    case .beginning, .client, .task:
      self = .client(waiter)
      return .later
    }
  }

  mutating func responseBegins() {
    switch self {
    case .task: self = .task(hasBegunResponse: true)
    case .beginning, .client, .given, .over: break
    }
  }

  /// - Returns: the task that waits, for which no request follows. A task that works finds out when it asks.
  mutating func ends() -> Waiter? {
    defer { self = .over }
    if case .client(let waiter) = self { return waiter }
    return nil
  }
}

extension Turn: Equatable where Waiter: Equatable, Given: Equatable {}
extension Turn.Reply: Equatable where Waiter: Equatable, Given: Equatable {}
