import FerryPlatform

/// The reason why bytes are not a message, and the place.
public struct MalformedMessage: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reason, with the place and the offending name or number.
  public var reason: String { place.isEmpty ? fault : "\(place): \(fault)" }
  /// The byte at which it was noticed.
  public let offset: Int
  private let fault: String
  /// The members around the fault, such as `tables.notes`.
  private var place = ""

  init(reason: String, offset: Int) { (fault, self.offset) = (reason, offset) }

  /// Returns the error of the object whose member has the fault.
  ///
  /// - Parameter isRoot: Whether a fault with a place stays as it is.
  func within(_ name: String, isRoot: Bool = false) -> MalformedMessage {
    var error = self
    if !isRoot || place.isEmpty { error.place = place.isEmpty ? name : "\(name).\(place)" }
    return error
  }

  public var description: String { "\(reason) (at byte \(offset))" }

  /// The description for the author of a file.
  package var aboutFile: String { description.replacing(bytes: "the message", with: "the file") }
}
