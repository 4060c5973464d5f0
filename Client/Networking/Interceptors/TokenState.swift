/// The token of a session and the refreshes: a pure machine.
struct TokenState: Sendable, Equatable {
  /// The next step of a request.
  enum Step: Sendable, Equatable {
    /// Continue with this token, or without one.
    case use(String?)
    /// Fetch a token, or wait for the fetch of a replacement for this one.
    case fetch(rejected: String?)
    /// No other token is to be had: the rejection stands.
    case giveUp
  }

  /// Counts the sessions: a fetch from an earlier one sets no token in this one.
  private(set) var session = 0
  private var token: String?
  /// True if the token was fetched or set: an absent one is then final.
  private var isKnown = false
  /// The rejected token to be replaced by a fetch under way.
  private var replacing: String?
  /// The token rejected by the server when there was no other.
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

  /// Returns the step after the server rejected a request with this token.
  ///
  /// A request sent before a refresh may come back after it: it uses the new token, without another
  /// refresh.
  func afterRejection(of sent: String?) -> Step {
    if !isKnown { return .fetch(rejected: nil) }
    if let replacing { return .fetch(rejected: replacing) }
    if let token, token != sent { return .use(token) }
    guard let sent, sent == token, sent != refused else { return .giveUp }
    return .fetch(rejected: sent)
  }

  /// Returns the step of a caller after the decision to fetch: a fetch may have ended since then.
  /// Records the fetch if one begins now.
  mutating func beginFetch(rejected: String?) -> Step {
    let step = rejected == nil ? beforeSending : afterRejection(of: rejected)
    if case .fetch = step { replacing = rejected }
    return step
  }

  /// Applies the result of a fetch begun in `session`.
  mutating func fetched(_ new: String?, insteadOf rejected: String?, in session: Int) {
    guard session == self.session else { return }
    (isKnown, replacing) = (true, nil)
    if new == nil || new == rejected { refused = rejected } else { (token, refused) = (new, nil) }
  }

  /// Records the failure of a fetch begun in `session`: the next rejection begins another one.
  mutating func failed(in session: Int) {
    if session == self.session { replacing = nil }
  }
}
