import Foundation

extension MirrorTable {
  /// Returns the texts of the key with this identifier (SPEC.md §27).
  func key(ofRecord record: String) -> [String?]? {
    guard key.count > 1 else { return [record] }
    let parts = try? JSONDecoder().decode([KeyPart].self, from: Data(record.utf8))
    return parts?.count == key.count ? parts?.map(\.text) : nil
  }

  private struct KeyPart: Decodable {
    let text: String

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int64.self) {
        text = String(number)
      } else {
        text = try container.decode(String.self)
      }
    }
  }
}
