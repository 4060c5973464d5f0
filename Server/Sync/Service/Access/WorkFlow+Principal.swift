import FerryPlatform
import FerryProtocol

// The flows of requests. All principals of an account are one user.
extension WorkFlow {
  /// Creates the flow of a sender not known yet: an address, or 64 bits of one.
  init(address: String, part: String = "") {
    self.init(user: "address:" + (ListenAddress.network(of: address) ?? address), part: part)
  }

  /// Creates the flow of a principal. While a server has no tokens, each address is a user.
  init(of principal: Principal, in part: String?, at address: String) {
    if principal == .anonymous {
      self.init(address: address, part: part ?? "")
    } else {
      self.init(user: principal.account.id, part: part ?? "")
    }
  }
}
