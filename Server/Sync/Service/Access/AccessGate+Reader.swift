import FerryProtocol

extension AccessGate {
  /// Which space a visitor may read where the address names none: that of its token, whatever the
  /// role; `nil` for all spaces, while everybody is let in. A `Problem` where it may read none.
  package func admitReader(
    _ visitor: Visitor
  ) async throws(StoreError) -> Result<SpaceName?, Problem> {
    if try await isOpen() {
      return loopbackFault(of: visitor).map { .failure($0) } ?? .success(nil)
    }
    var known: StoredToken?
    if case .token(let token) = visitor.credential { known = try await lookUp(token) }
    return AccessRule.recognise(visitor.credential, known: known).map(\.space)
  }
}
