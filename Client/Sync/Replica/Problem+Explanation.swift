import FerryPlatform
import FerryProtocol

extension Problem {
  /// The problem in words for each reader.
  package var explanation: Explanation {
    let (next, user) = advice
    let remedy: Explanation.Remedy =
      switch code {
      case .unauthorized, .forbidden: .credentials
      default: code.action == .retry ? .later : .correction
      }
    return Explanation(
      code.rawValue, code.title.prefix(1).lowercasedASCII + code.title.dropFirst(), detail,
      next: next, user: user, remedy, description: description)
  }

  /// The next step at a command, and the texts for an app's user. A code without its own texts has
  /// those of its action.
  private var advice: (next: String, user: (event: String, next: String)) {
    let retried = (
      "The server is busy at the moment.",
      "Sync again later. Your changes are safe on this device."
    )
    let rejected = (
      "The server rejects the app's request.",
      "If this does not pass, contact the app's support. Your changes are kept."
    )
    return switch code {
    case .unauthorized:
      (
        "get a token from `ferryd token create`, then run `ferry init --server URL --space NAME "
          + "--token TOKEN`",
        ("The server does not accept your sign-in any more.", "Sign in again.")
      )
    case .forbidden:
      (
        "ask an admin of the space for another role, for an invitation, or for a token of this space",
        (
          "You are not permitted to do this.", "Ask the owner of the data for the permission."
        )
      )
    case .unknownSpace:
      (
        "check --space, or create the space on the server: `ferryd space create NAME`",
        (
          "The server does not have this data yet.",
          "Ask the app's support to set it up. Your changes are safe on this device."
        )
      )
    case .upgradeRequired:
      (
        "install a newer Ferry; your changes are safe in the replica",
        (
          "The server needs a newer version of the app.",
          "Install a newer version. Your changes are safe on this device."
        )
      )
    case .storageQuota:
      (
        "delete records that you do not need, or ask the server's administrator for a larger "
          + "quota; your changes are safe in the replica",
        (
          "The server has no room for your changes.",
          "Delete records that are not needed, or ask for a larger quota. Your changes are safe."
        )
      )
    case .unknownInvitation:
      (
        "ask for another invitation: `ferry invite`",
        ("The invitation is not valid any more.", "Ask for another one.")
      )
    case .notFound: ("check the address that you gave to `ferry init --server URL`", rejected)
    case .schemaConflict: (schemaNext, rejected)
    case .schemaLosses:
      (
        "add the rules to the document, or `ferry schema apply FILE` with --merge or --replace",
        rejected
      )
    case .cursorRequired: (Self.recovers, rejected)
    case .deviceTaken: (Self.recovers, retried)
    case .epochChanged, .cursorAhead, .historyLost, .cursorExpired, .lostAndExpired:
      ("sync again: the replica pulls everything again; your changes are safe in it", retried)
    default:
      switch code.action {
      case .retry: ("your changes are safe in the replica; try again later", retried)
      case .fix: ("see `ferry log` and `ferry status`", rejected)
      case .resynchronise: ("see `ferry log` and `ferry status`", retried)
      }
    }
  }

  private static let recovers =
    "sync again: the replica recovers by itself; your changes are safe in it"

  /// A remedy if a schema cannot be put in force.
  private var schemaNext: String {
    if violations.isEmpty { return "correct the document, then `ferry schema apply FILE` again" }
    let repair = "repair the records or the document, then `ferry schema apply FILE` again"
    if violations.allSatisfy({ $0.holder != nil }) { return repair }
    return repair + "; with --keep-records types and required columns apply to later writes only"
  }
}
