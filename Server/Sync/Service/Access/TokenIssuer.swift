/// An issuer of JSON Web Tokens, and the source of the keys.
package struct TokenIssuer: Sendable {
  package var rules: ClaimRules
  package var source: KeySource

  package init(rules: ClaimRules, source: KeySource) {
    self.rules = rules
    self.source = source
  }
}

extension FerryServerConfiguration {
  /// Which requests are let in while no token was ever made.
  var openPolicy: OpenPolicy {
    var policy =
      listen.isLoopback && !isInsecure
      ? OpenPolicy.loopback(alsoNamed: allowedHosts) : .insecure(alsoNamed: allowedHosts)
    policy.crossOrigin = CrossOriginRule(allowedOrigins)
    return policy
  }
}
