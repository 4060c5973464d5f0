import FerryPlatform
import FerryProtocol

/// A composed mission on this device: the app's description.
struct Draft: Sendable, Equatable {
  /// The content of a draft, as it is stored.
  struct Document: Sendable, Equatable, Codable {
    var title: String
    var summary: String
    var priority: Int64
    var items: [OwnItem]
  }

  /// The number in the order of addition, and the version of the mission.
  var number: Int64
  var id: MissionID
  var document: Document
  /// The app's value as JSON.
  var payload: [UInt8]?
  /// `downloading` until the version is in use, or the draft ends without success.
  var state = MissionState.downloading
  var reason: MissionError?
  /// A proof of the content's encryption key.
  var seal: [UInt8]
  /// The time of addition, in milliseconds since 1970.
  var at: Int64

  /// True if the draft is neither done nor failed nor cancelled.
  var isOpen: Bool { !state.isFinal }

  /// Returns the name of an item's download.
  func downloadID(_ place: Int) -> DownloadID { DownloadID("\(number)/\(place)") }

  /// Returns the number of the draft with a download; `nil` for other downloads.
  static func number(of id: DownloadID) -> Int64? {
    id.value.parts(at: "/").first.flatMap { Int64($0) }
  }
}
