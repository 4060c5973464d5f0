-- The shop's own tables. `ferryd mirror adopt` makes all but `requests` tables of a space.

CREATE TABLE customers (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  email text NOT NULL UNIQUE,
  name text NOT NULL,
  -- Only approved customers may order.
  approved boolean NOT NULL DEFAULT false
);

CREATE TABLE products (
  id text PRIMARY KEY,
  name text NOT NULL,
  price bigint NOT NULL CHECK (price > 0)
);

-- Double entry: goods go from one place to another, and all places together have 0 of each product.
CREATE TABLE movements (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  product text NOT NULL REFERENCES products,
  from_place text NOT NULL,
  to_place text NOT NULL,
  quantity bigint NOT NULL CHECK (quantity > 0),
  CHECK (from_place <> to_place)
);

-- The sum of the movements, which each of their transactions keeps.
CREATE TABLE stock (
  product text NOT NULL REFERENCES products,
  place text NOT NULL,
  quantity bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (product, place)
);

CREATE TABLE orders (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  customer text NOT NULL REFERENCES customers,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'packed', 'sent')),
  -- The sum of the lines, which each of their transactions keeps.
  total bigint NOT NULL DEFAULT 0 CHECK (total >= 0)
);
CREATE INDEX ON orders (customer);

CREATE TABLE lines (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  order_id text NOT NULL REFERENCES orders ON DELETE CASCADE,
  product text NOT NULL REFERENCES products,
  quantity bigint NOT NULL CHECK (quantity BETWEEN 1 AND 100),
  price bigint NOT NULL CHECK (price > 0)
);
CREATE INDEX ON lines (order_id);

CREATE TABLE notes (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  order_id text NOT NULL REFERENCES orders ON DELETE CASCADE,
  body text NOT NULL CHECK (length(body) <= 200)
);
CREATE INDEX ON notes (order_id);

CREATE TABLE replies (
  id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  note text NOT NULL REFERENCES notes ON DELETE CASCADE,
  body text NOT NULL
);
CREATE INDEX ON replies (note);

-- The committed transactions of the backend: it looks here after it lost a connection.
CREATE TABLE requests (
  id text PRIMARY KEY,
  kind text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);

CREATE VIEW entries AS
  SELECT id AS movement, product, to_place AS place, quantity AS amount FROM movements
  UNION ALL SELECT id, product, from_place, -quantity FROM movements;
