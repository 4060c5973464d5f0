/// The token of a session and its refreshes: a pure machine.
struct TokenState: Sendable, Equatable {
  /// The next step of a request.
  enum Step: Sendable, Equatable {
    /// Go on with this token, or without one.
    case use(String?)
    /// Fetch a token, or wait for the fetch that replaces this one.
    case fetch(rejected: String?)
    /// No other token is to be had: the rejection stands.
    case giveUp
  }

  /// Counts the sessions: a fetch that began in an earlier one brings no token into this one.
  private(set) var session = 0
  private var token: String?
  /// Whether the token was fetched or set: an absent one is then final.
  private var isKnown = false
  /// The rejected token that a fetch under way replaces.
  private var replacing: String?
  /// The token that the server rejected when there was no other.
  private var refused: String?

  init() {}

  /// Begins a session with this token; `nil` to sign out.
  mutating func set(_ token: String?) {
    let session = session + 1
    self = TokenState()
    (self.session, self.token, isKnown) = (session, token, true)
  }

  /// The step before a request is sent.
  var beforeSending: Step {
    if !isKnown { return .fetch(rejected: nil) }
    return replacing.map { .fetch(rejected: $0) } ?? .use(token)
  }

  /// Returns the step after the server rejected a request that was sent with this token.
  ///
  /// A request that left before a refresh may come back after it: it takes the new token, without
  /// another refresh.
  func afterRejection(of sent: String?) -> Step {
    if !isKnown { return .fetch(rejected: nil) }
    if let replacing { return .fetch(rejected: replacing) }
    if let token, token != sent { return .use(token) }
    guard let sent, sent == token, sent != refused else { return .giveUp }
    return .fetch(rejected: sent)
  }

  /// Returns the step of a caller that decided to fetch: a fetch may have ended since then. Notes
  /// the fetch if one begins now.
  mutating func beginFetch(rejected: String?) -> Step {
    let step = rejected == nil ? beforeSending : afterRejection(of: rejected)
    if case .fetch = step { replacing = rejected }
    return step
  }

  /// Takes the result of a fetch that began in `session`.
  mutating func fetched(_ new: String?, insteadOf rejected: String?, in session: Int) {
    guard session == self.session else { return }
    (isKnown, replacing) = (true, nil)
    if new == nil || new == rejected { refused = rejected } else { (token, refused) = (new, nil) }
  }

  /// Notes that a fetch that began in `session` failed: the next rejection begins another one.
  mutating func failed(in session: Int) {
    if session == self.session { replacing = nil }
  }
}
