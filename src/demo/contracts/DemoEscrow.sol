// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./DemoPair.sol";

/// Keeps what is to be carried to another chain: the relayer takes it once it has delivered there, or it goes back to its payer.
contract DemoEscrow {
    /// What the relayer has quoted, signed as a whole.
    struct Deposit {
        address payer;
        /// The zero address is the chain's coin.
        address token;
        uint256 amount;
        /// Block times: not paid in later, not delivered later, not given back before.
        uint256 payUntil;
        uint256 deliverUntil;
        uint256 returnFrom;
        uint256 toChainId;
        address toToken;
        uint256 toAmount;
        /// Called there with `toAmount` at hand.
        address target;
        bytes call;
        /// Who has what the call leaves.
        address fallbackTo;
        /// No two quotes are alike.
        uint256 serial;
    }

    enum State {
        NONE,
        OPEN,
        TAKEN,
        RETURNED
    }

    address public immutable relayer;
    mapping(bytes32 => State) public stateOf;

    event Deposited(bytes32 indexed id, Deposit deposit);
    event Taken(bytes32 indexed id);
    event Returned(bytes32 indexed id);

    constructor(address relayer_) {
        relayer = relayer_;
    }

    function idOf(Deposit calldata d) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), d));
    }

    /// @param v, r, s the relayer's signature of the id, as eth_sign makes it
    function deposit(Deposit calldata d, uint8 v, bytes32 r, bytes32 s) external payable {
        bytes32 id = idOf(d);
        require(block.timestamp <= d.payUntil, "the quote is over");
        require(msg.sender == d.payer, "somebody else's quote");
        bytes32 signed = keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", id));
        require(ecrecover(signed, v, r, s) == relayer, "not a quote of the relayer's");
        require(stateOf[id] == State.NONE, "a quote is used once");
        require(msg.value == (d.token == address(0) ? d.amount : 0), "other coins than quoted");
        stateOf[id] = State.OPEN;
        emit Deposited(id, d);
        if (d.token == address(0)) return;
        AnyToken.move(
            d.token, abi.encodeWithSignature("transferFrom(address,address,uint256)", msg.sender, address(this), d.amount)
        );
    }

    /// For the relayer, who has delivered: it is trusted, as nothing here can look at the other chain.
    function take(Deposit calldata d) external {
        require(msg.sender == relayer, "not the relayer");
        bytes32 id = _close(d, State.TAKEN);
        emit Taken(id);
        _send(d, relayer);
    }

    /// Gives back what was not delivered in its time, whoever asks.
    function giveBack(Deposit calldata d) external {
        require(block.timestamp >= d.returnFrom, "it may still be delivered");
        bytes32 id = _close(d, State.RETURNED);
        emit Returned(id);
        _send(d, d.payer);
    }

    function _close(Deposit calldata d, State state) private returns (bytes32 id) {
        id = idOf(d);
        require(stateOf[id] == State.OPEN, "no such deposit is open");
        stateOf[id] = state;
    }

    function _send(Deposit calldata d, address to) private {
        if (d.token == address(0)) {
            (bool ok,) = to.call{value: d.amount}("");
            require(ok, "coins were not taken");
        } else {
            AnyToken.move(d.token, abi.encodeWithSignature("transfer(address,uint256)", to, d.amount));
        }
    }
}
