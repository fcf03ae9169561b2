-- booked is what the caps count for an attempt while it is not dead: its cost, and of
-- a swap's first leg what the second may cost too, until that is final; 0 of the second.
-- Null of one that an earlier release recorded: its cost. That release may run on beside
-- this one; what it buries, or ends, may leave the caps a swap too high or too low for a day.
ALTER TABLE attempts ADD COLUMN booked bigint CHECK (booked >= 0);

---- create above / drop below ----

ALTER TABLE attempts DROP COLUMN booked;
