/// The shop for the work of devices and a program: its tables, and the sums kept by each
/// transaction. A reader of a part of a transaction sees other sums.
package enum ShopBooks {
  /// A travelling table.
  package struct Table: Sendable {
    package var name: String
    package var key: [String]
    package var columns: [String]
    /// Boolean columns in PostgreSQL, with 0 or 1 on devices.
    package var truths: Set<String> = []

    /// The query of all rows on a device: the key as one text, then the columns as texts.
    package var deviceQuery: String {
      "SELECT " + key.joined(separator: " || '/' || ")
        + columns.map { ", CAST(\($0) AS TEXT)" }.joined() + " FROM \(name)"
    }

    /// The same in PostgreSQL.
    package var postgresQuery: String {
      "SELECT " + key.joined(separator: " || '/' || ")
        + columns.map { truths.contains($0) ? ", \($0)::int::text" : ", \($0)::text" }.joined()
        + " FROM \(name)"
    }
  }

  /// Parents come before their children.
  package static let tables = [
    Table(
      name: "customers", key: ["id"], columns: ["email", "name", "approved"],
      truths: ["approved"]),
    Table(name: "products", key: ["id"], columns: ["name", "price"]),
    Table(
      name: "movements", key: ["id"],
      columns: ["product", "from_place", "to_place", "quantity"]),
    Table(name: "stock", key: ["product", "place"], columns: ["quantity"]),
    Table(name: "orders", key: ["id"], columns: ["customer", "status", "total"]),
    Table(name: "lines", key: ["id"], columns: ["order_id", "product", "quantity", "price"]),
    Table(name: "notes", key: ["id"], columns: ["order_id", "body"]),
    Table(name: "replies", key: ["id"], columns: ["note", "body"]),
  ]

  /// Returns the wrong sums in one snapshot, in order.
  package static func faults(in rows: NamedRows) -> [String] {
    var (stock, movements, lines): ([String: Int], [String: Int], [String: Int]) = ([:], [:], [:])
    var (totals, orders): ([String: Int], [String: String]) = ([:], [:])
    var faults: [String] = []
    for (name, row) in rows {
      let number = { (column: String) in Int(row[column] ?? "") ?? 0 }
      switch name.table {
      case "stock": stock[name.key] = number("quantity")
      case "movements":
        let product = row["product"] ?? ""
        movements["\(product)/\(row["to_place"] ?? "")", default: 0] += number("quantity")
        movements["\(product)/\(row["from_place"] ?? "")", default: 0] -= number("quantity")
      case "orders": totals[name.key] = number("total")
      case "lines":
        lines[row["order_id"] ?? "", default: 0] += number("quantity") * number("price")
        orders[name.key] = row["order_id"] ?? ""
      default: break
      }
    }
    for (place, sum) in movements where stock[place] ?? 0 != sum {
      faults.append("the stock \(place) is \(stock[place] ?? 0), its movements are \(sum)")
    }
    for (place, quantity) in stock where quantity != 0 && movements[place] == nil {
      faults.append("the stock \(place) is \(quantity), without a movement")
    }
    for (order, total) in totals where lines[order] ?? 0 != total {
      faults.append("order \(order) has the total \(total), its lines are \(lines[order] ?? 0)")
    }
    for (line, order) in orders where totals[order] == nil {
      faults.append("line \(line) has no order \(order)")
    }
    return faults.sorted()
  }
}
