import FerryPlatform

/// Decides which requests are the page's own; pure (SPEC.md §33).
///
/// A request must pass all of these:
/// - the `Host` is the shell's address, so another name for 127.0.0.1 gets nothing;
/// - the `Origin`, if there is one, is the shell's, and each call has one;
/// - browsers mark it as one of the same origin, and not as one of a frame;
/// - the path begins with the start's token, and the cookie is the start's;
/// - a call has the secret of the page in a field that no other page can read or set.
struct RequestGate: Sendable {
  /// The shell's address, such as `127.0.0.1:8123`.
  let authority: String
  /// The first part of all paths.
  let token: Secret
  /// The value of the cookie; scripts cannot read it.
  let cookie: Secret

  static let cookieName = "ferry-shell"
  /// The field with the page's secret.
  static let secretField = "ferry-page"

  /// A passed request, apart from the check of the page's secret.
  enum Route: Sendable, Equatable {
    /// The one-time address to set the cookie.
    case open(String)
    /// A page load begins.
    case begin
    /// A file of the bundle.
    case file(page: Int, path: String)
    /// The script of the bridge.
    case script(page: Int)
    /// Large data.
    case content(page: Int, link: String)
    /// A call with a page's secret; the caller compares it.
    case call(page: Int, Call, secret: String)
    /// The browser reports a violation of the policy.
    case report(page: Int)
    /// The browser asks by itself for an icon of the whole address. There is none, and the request is
    /// no attack.
    case icon
  }

  /// The calls of the bridge.
  enum Call: String, Sendable, CaseIterable {
    case call, events, watch, cancel, ready, failed, closed, upload
  }

  /// The reason why a request gets nothing.
  struct Refusal: Error, Equatable {
    let status: Int
    /// For the log; the request does not get it.
    let reason: String
  }

  /// Returns the route of a request.
  func route(_ head: RequestHead) throws(Refusal) -> Route {
    guard head["host"] == authority else {
      throw Refusal(status: 403, reason: "another host")
    }
    try checkSite(head)
    if head.target == "/favicon.ico" {
      try check(head, isMethod: .get)
      return .icon
    }
    let parts = head.target.dropFirst().parts(at: "/")
    if parts.count == 3, parts[0] == "-", parts[1] == "open" {
      try checkIsOpening(head)
      return .open(String(parts[2]))
    }
    guard let first = parts.first, token.isEqual(to: first) else {
      throw Refusal(status: 404, reason: "another path")
    }
    try checkCookie(head)
    if parts.count == 2, parts[1].isEmpty {
      try check(head, isMethod: .get)
      return .begin
    }
    guard parts.count >= 3, let page = Self.number(parts[1]) else {
      throw Refusal(status: 404, reason: "no page")
    }
    let rest = parts.dropFirst(2)
    return rest.first?.isSame(as: "-") == true && rest.count > 1
      ? try own(page, Array(rest.dropFirst()), head)
      : try file(page, rest, head)
  }

  private func own(
    _ page: Int, _ parts: [Substring], _ head: RequestHead
  ) throws(Refusal) -> Route {
    if parts == ["ferry.js"] {
      try check(head, isMethod: .get)
      return .script(page: page)
    }
    if parts.count == 2, parts[0] == "files" {
      try check(head, isMethod: .get)
      return .content(page: page, link: String(parts[1]))
    }
    guard parts.count == 1 else { throw Refusal(status: 404, reason: "no such address") }
    if parts[0] == "report" {
      try check(head, isMethod: .post)
      return .report(page: page)
    }
    guard let call = Call(rawValue: String(parts[0])) else {
      throw Refusal(status: 404, reason: "no such call")
    }
    try check(head, isMethod: .post)
    guard let secret = head[Self.secretField] else {
      throw Refusal(status: 403, reason: "no secret")
    }
    return .call(page: page, call, secret: secret)
  }

  private func file(
    _ page: Int, _ parts: ArraySlice<Substring>, _ head: RequestHead
  ) throws(Refusal) -> Route {
    try check(head, isMethod: .get)
    guard let path = BundlePath(encoded: parts) else {
      throw Refusal(status: 404, reason: "no path of a bundle")
    }
    return .file(page: page, path: path.text)
  }

  private func check(
    _ head: RequestHead, isMethod method: RequestHead.Method
  ) throws(Refusal) {
    let isRight =
      method == .get ? head.method != .post : head.method == method
    guard isRight else { throw Refusal(status: 405, reason: "another method") }
    // Browsers send the origin with each POST.
    guard method != .post || head.has("origin") else {
      throw Refusal(status: 403, reason: "a call without an origin")
    }
  }

  /// Checks the marks of the browser. A duplicate field has no value, and does not pass.
  private func checkSite(_ head: RequestHead) throws(Refusal) {
    if head.has("origin"), head["origin"] != "http://\(authority)" {
      throw Refusal(status: 403, reason: "another origin")
    }
    if head.has("sec-fetch-dest") {
      switch head["sec-fetch-dest"] {
      case nil, "frame", "iframe", "embed", "object", "fencedframe", "serviceworker":
        throw Refusal(status: 403, reason: "not a page of its own")
      default: break
      }
    }
    guard head.has("sec-fetch-site") else { return }
    switch head["sec-fetch-site"] {
    case "same-origin": return
    // Typed by the user, or opened by a program: only as a whole page.
    case "none" where head["sec-fetch-mode"] == "navigate": return
    case "cross-site" where isNavigation(head) && head.target.begins(with: "/-/open/"): return
    default: throw Refusal(status: 403, reason: "another site")
    }
  }

  private func isNavigation(_ head: RequestHead) -> Bool {
    head.method == .get && head["sec-fetch-mode"] == "navigate"
      && head["sec-fetch-dest"] == "document"
  }

  private func checkIsOpening(_ head: RequestHead) throws(Refusal) {
    // A preview must not use the address up, and neither must a request for the head alone.
    guard head.method == .get, !head.has("sec-purpose"), !head.has("purpose") else {
      throw Refusal(status: 403, reason: "a preview")
    }
  }

  private func checkCookie(_ head: RequestHead) throws(Refusal) {
    let pairs = (head["cookie"] ?? "").words(at: ";").map {
      $0.trimmedASCII.parts(at: "=", most: 2)
    }
    let values = pairs.filter { $0.count == 2 && $0[0].isSame(as: Self.cookieName) }.map { $0[1] }
    guard values.count == 1, cookie.isEqual(to: values[0]) else {
      throw Refusal(status: 403, reason: "no cookie")
    }
  }

  private static func number(_ text: Substring) -> Int? {
    guard 1...9 ~= text.utf8.count, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
      !text.begins(with: "0")
    else { return nil }
    return Int(text)
  }
}
